#include "thimble/train/run_folder/run_state.h"

#include "thimble/base/json_member.h"

namespace thimble {
namespace {

// Calls visit(name, member) for every member, for both reading and writing.
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
  visit("bleu", state.bleu);
  visit("best_accuracy", state.best_accuracy);
  visit("best_epoch", state.best_epoch);
  visit("seconds", state.seconds);
  visit("metrics_bytes", state.metrics_bytes);
  visit("metrics_checksum", state.metrics_checksum);
}

template <class T>
bool ReadMember(const Json& json, T& member) {
  return FromJson(json, member);
}
// All counts are 0 or more.
bool ReadMember(const Json& json, int64_t& number) { return FromJson(json, number) && number >= 0; }

}  // namespace

bool NoteEvaluation(const EpochReport& report, RunState& state) {
  state.test_loss = report.test.loss;
  state.test_accuracy = report.test.accuracy;
  if (report.test.bleu) state.bleu = report.test.bleu;
  const double accuracy =
      report.validation.count > 0 ? report.validation.accuracy : report.test.accuracy;
  if (state.best_accuracy && accuracy <= *state.best_accuracy) return false;
  state.best_accuracy = accuracy;
  state.best_epoch = report.epoch;
  return true;
}

void AddResults(const RunState& state, TrainSummary& summary) {
  summary.steps = state.step;
  summary.train_loss = state.train_loss;
  summary.train_accuracy = state.train_accuracy;
  summary.test_loss = state.test_loss;
  summary.test_accuracy = state.test_accuracy;
  summary.bleu = state.bleu;
  summary.best_accuracy = state.best_accuracy;
  summary.best_epoch = state.best_epoch;
}

std::string ToJson(const RunState& state) {
  Json json;
  ForEachMember(state, [&](const char* name, const auto& member) { json[name] = ToJson(member); });
  return json.Dump();
}

Result<RunState> RunStateFromJson(const std::string& text) {
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !json->is_object()) return BadInput("progress is not a JSON object");
  RunState state;
  std::string wrong;
  ForEachMember(state, [&](const char* name, auto& member) {
    const Json* found = json->Find(name);
    if (found == nullptr || !ReadMember(*found, member)) wrong = name;
  });
  if (!wrong.empty()) return BadInput("progress: '" + wrong + "' is missing or invalid");
  return state;
}

}  // namespace thimble
