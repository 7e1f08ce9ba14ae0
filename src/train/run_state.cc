#include "thimble/train/run_state.h"

#include <nlohmann/json.hpp>

namespace thimble {
namespace {

// Calls visit(name, member) for every member, for both directions.
template <class State, class Visit>
void ForEachMember(State& state, Visit visit) {
  visit("step", state.step);
  visit("loss_sum", state.loss_sum);
  visit("correct", state.correct);
  visit("samples", state.samples);
  visit("train_loss", state.train_loss);
  visit("train_accuracy", state.train_accuracy);
  visit("test_loss", state.test_loss);
  visit("test_accuracy", state.test_accuracy);
  visit("best_accuracy", state.best_accuracy);
  visit("best_epoch", state.best_epoch);
  visit("seconds", state.seconds);
  visit("metrics_bytes", state.metrics_bytes);
}

}  // namespace

std::string ToJson(const RunState& state) {
  nlohmann::ordered_json json;
  ForEachMember(state, [&](const char* name, const auto& member) { json[name] = member; });
  return json.dump();
}

Result<RunState> RunStateFromJson(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return BadInput("progress is not a JSON object");
  RunState state;
  std::string missing;
  ForEachMember(state, [&](const char* name, auto& member) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) {
      missing = name;
    } else {
      member = found->template get<std::remove_reference_t<decltype(member)>>();
    }
  });
  if (!missing.empty()) return BadInput("progress lacks the number '" + missing + "'");
  return state;
}

}  // namespace thimble
