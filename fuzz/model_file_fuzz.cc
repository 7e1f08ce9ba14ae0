// Feeds arbitrary text to the reader of model files and builds every network it accepts, for
// training and evaluation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "thimble/base/check.h"
#include "thimble/graph/append_node.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/model/model_file.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

constexpr int64_t kBatch = 2;
// Building takes a time that grows with the square of the layers.
constexpr size_t kMaxBuiltLayers = 500;

// One line of printable ASCII that begins with the place.
void CheckError(const Error& error) {
  THIMBLE_CHECK(error.kind == ErrorKind::kBadInput, "{}", error.message);
  THIMBLE_CHECK(error.message.starts_with("f.toml:"), "no place: {}", error.message);
  THIMBLE_CHECK(error.message.size() < 2000, "{} bytes of error", error.message.size());
  THIMBLE_CHECK(error.message.find('\n') == std::string::npos, "more than one line");
}

// Sums that later stages form without checks.
void AddUp(const Graph& graph) {
  int64_t flops = 0;
  size_t bytes = 0;
  for (const Node& node : graph.nodes) {
    flops += BuiltinOps().Get(node.op).CountFlops(NodeShapes(graph, node).call());
  }
  for (const Value& value : graph.values) bytes += value.size_bytes();
  THIMBLE_CHECK(flops >= 0 && flops < INT64_MAX / 8, "{} operations", flops);
  THIMBLE_CHECK(bytes < SIZE_MAX / 64, "{} bytes", bytes);
  THIMBLE_CHECK(CountParameters(graph) < INT64_MAX / 64, "too many parameters");
}

void BuildEverything(const ModelFile& file) {
  const auto model = ToClassifier(file, file.images);
  THIMBLE_CHECK(model.ok(), "{}", model.error().message);
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    const auto network = BuildNetwork(*model, BuiltinOps(), kBatch, mode);
    if (!network.ok()) {
      CheckError(network.error());
      continue;
    }
    THIMBLE_CHECK(VerifyGraph(network->graph, BuiltinOps()).ok(), "not a graph");
    AddUp(network->graph);
  }
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto file = thimble::ParseModelFile(text, "f.toml");
  if (!file.ok()) {
    thimble::CheckError(file.error());
  } else if (file->layers.size() <= thimble::kMaxBuiltLayers) {
    thimble::BuildEverything(*file);
  }
  return 0;
}
