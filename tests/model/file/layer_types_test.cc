#include "thimble/model/file/layer_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/support/test_paths.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

TEST(LayerTypes, AreFoundByName) {
  std::set<std::string_view> names;
  for (const LayerType& type : LayerTypes()) {
    EXPECT_EQ(FindLayerType(type.name), &type);
    EXPECT_TRUE(names.insert(type.name).second) << type.name;
  }
  EXPECT_EQ(FindLayerType("convolution"), nullptr);
  EXPECT_EQ(FindLayerType(""), nullptr);
}

TEST(LayerTypes, UsualValuesAreInRange) {
  for (const LayerType& type : LayerTypes()) {
    for (const NumberKey& key : type.keys) {
      EXPECT_LE(key.least, key.most);
      if (!key.fallback) continue;
      EXPECT_GE(*key.fallback, key.least) << type.name << " " << key.name;
      EXPECT_LE(*key.fallback, key.most) << type.name << " " << key.name;
    }
  }
  EXPECT_EQ(RangeOf({"x", 1, 7}), "1 to 7");
}

TEST(LayerTypes, ConvolutionsStartAsTheBuilderSays) {
  const ConvSpec usual;
  const std::vector<NumberKey>& keys = FindLayerType("conv")->keys;
  EXPECT_EQ(keys[0].fallback, std::nullopt);
  EXPECT_EQ(keys[1].fallback, usual.kernel);
  EXPECT_EQ(keys[2].fallback, usual.stride);
  EXPECT_EQ(keys[3].fallback, usual.padding);
}

// Parameters and arithmetic of the layer's graph.
TEST(LayerTypes, SizesAreThoseOfTheGraph) {
  const std::vector<int64_t> numbers = {5, 3, 2, 1};
  for (const char* name : {"conv", "linear", "avg_pool", "global_avg_pool"}) {
    SCOPED_TRACE(name);
    const LayerType& type = *FindLayerType(name);
    NetworkBuilder net(BuiltinOps(), Mode::kEvaluate);
    const ValueId x = net.Input("x", {2, 6, 6, 4}, DType::kF32);
    const std::span<const int64_t> given(numbers.data(), type.keys.size());
    const LayerSize size = type.size(net.shape(x), given);
    type.build(net, {"layer", x, {}, given});
    const auto built = std::move(net).Finish();
    ASSERT_TRUE(built.ok()) << built.error().message;
    const Graph& graph = built->graph;
    EXPECT_EQ(size.parameters, CountParameters(graph));
    const Node& node = graph.nodes.back();
    const int64_t flops = BuiltinOps().Get(node.op).CountFlops(NodeShapes(graph, node).call());
    const auto outputs = static_cast<double>(graph.value(node.outputs[0]).shape.elements());
    EXPECT_NEAR(size.operations_per_output * outputs, static_cast<double>(flops),
                0.1 * static_cast<double>(flops));
  }
}

TEST(LayerTypes, GroupNormHasTwoParametersForEachChannel) {
  const std::vector<int64_t> numbers = {2};
  EXPECT_EQ(FindLayerType("group_norm")->size({2, 6, 6, 4}, numbers).parameters, 8);
  EXPECT_EQ(FindLayerType("dropout")->size({2, 6, 6, 4}, numbers).parameters, 0);
}

TEST(LayerTypes, AreDocumented) {
  std::ifstream file(DocsFolder() + "/model-files.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const LayerType& type : LayerTypes()) {
    const size_t begin = page.find("\n| `" + std::string(type.name) + "` |");
    ASSERT_NE(begin, std::string::npos) << type.name;
    const std::string row = page.substr(begin + 1, page.find('\n', begin + 1) - begin - 1);
    for (const NumberKey& key : type.keys) {
      EXPECT_THAT(row, HasSubstr("`" + std::string(key.name) + "`")) << type.name;
    }
    EXPECT_EQ(type.is_sum, row.find("`with`") != std::string::npos) << type.name;
    EXPECT_EQ(type.has_parameters, row.find("`name`") != std::string::npos) << type.name;
  }
}

}  // namespace
}  // namespace thimble
