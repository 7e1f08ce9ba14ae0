// Feeds arbitrary text to the reader of model files and builds every network it accepts, for
// training and evaluation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/graph/append_node.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/model/model_file.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

constexpr const char* kPath = "f.toml";
constexpr int64_t kBatch = 2;
// Building takes time quadratic in the number of layers.
constexpr size_t kMaxBuiltLayers = 500;

// Checks the sums that later stages compute without overflow checks.
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
      CheckError(network.error(), kPath);
      continue;
    }
    THIMBLE_CHECK(VerifyGraph(network->graph, BuiltinOps()).ok(), "the graph is invalid");
    AddUp(network->graph);
  }
}

void ReadAndBuild(std::string_view text) {
  const auto file = ParseModelFile(std::string(text), kPath);
  if (!file.ok()) return CheckError(file.error(), kPath);
  if (file->layers.size() <= kMaxBuiltLayers) BuildEverything(*file);
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadAndBuild(thimble::AsText(bytes, size));
  return 0;
}
