// The Winograd kernels of conv2d and its gradients: shapes they accept and decline, their blocks,
// and their errors compared with those of the plain kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/kernel_run.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/ops/conv2d/winograd/blocking.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Filters {
  int64_t batch, height, width, channels, out_channels, padding;
  int64_t kernel = 3;
  int64_t stride = 1;

  Shape x() const { return {batch, height, width, channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
  Shape dy() const {
    return {batch, (height + 2 * padding - kernel) / stride + 1,
            (width + 2 * padding - kernel) / stride + 1, out_channels};
  }
  OpCase Case(const std::string& op) const {
    OpCase result;
    result.op = op;
    result.attributes = {{"stride", stride}, {"padding", padding}};
    if (op == "conv2d") {
      result.inputs = {x(), w()};
    } else if (op == "conv2d_add") {
      result.inputs = {x(), w(), dy()};
    } else if (op == "conv2d_grad_input") {
      result.inputs = {w(), dy()};
      result.attributes.Set("height", height);
      result.attributes.Set("width", width);
    } else {
      result.inputs = {x(), dy()};
      result.attributes.Set("kernel_height", kernel);
      result.attributes.Set("kernel_width", kernel);
    }
    return result;
  }
};

const std::vector<std::string> kWinogradOps = {"conv2d", "conv2d_add", "conv2d_grad_input",
                                               "conv2d_grad_weight"};

// Columns: batch, height, width, channels, out channels, padding.
const std::vector<Filters> kFilters = {
    {1, 1, 1, 8, 8, 1},      // one pixel, padding all around
    {1, 3, 3, 24, 40, 0},    // one output
    {1, 4, 4, 16, 16, 1},    // one whole tile
    {2, 5, 7, 9, 17, 1},     // tiles over the edge, tails of vectors
    {1, 6, 9, 16, 33, 2},    // more outputs than inputs
    {2, 13, 2, 33, 8, 1},    // narrow
    {1, 8, 8, 130, 34, 1},   // two blocks of input channels
    {2, 9, 8, 260, 8, 1},    // three blocks of input channels, in regions of tiles
    {1, 5, 4, 12, 130, 0},   // several blocks of output channels
    {3, 24, 24, 8, 16, 1},   // more tiles than a group; parts of the weight gradient
    {2, 16, 16, 64, 64, 1},  // a layer of wrn-28-2
};

const Kernel& WinogradKernel(const std::string& op) {
  const auto& kernels = BuiltinOps().Get(op).kernels();
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [](const Kernel& k) { return k.option == "winograd"; });
  THIMBLE_CHECK(found != kernels.end(), "{} has no Winograd kernel", op);
  return *found;
}

std::string Declines(const Filters& filters, const std::string& op) {
  const OpCase op_case = filters.Case(op);
  const PreparedCase prepared(op_case);
  return std::string(WinogradKernel(op).declines(prepared.call()));
}

TEST(WinogradTest, TakesTheseShapes) {
  for (const Filters& filters : kFilters) {
    for (const std::string& op : kWinogradOps) EXPECT_THAT(Declines(filters, op), IsEmpty()) << op;
  }
}

TEST(WinogradTest, DeclinesTheRest) {
  for (const std::string& op : kWinogradOps) {
    EXPECT_THAT(Declines({1, 8, 8, 16, 16, 2, /*kernel=*/5}, op), HasSubstr("3 x 3"));
    EXPECT_THAT(Declines({1, 8, 8, 16, 16, 0, /*kernel=*/1}, op), HasSubstr("3 x 3"));
    EXPECT_THAT(Declines({1, 8, 8, 16, 16, 1, 3, /*stride=*/2}, op), HasSubstr("stride"));
    EXPECT_THAT(Declines({1, 8, 8, 16, 16, 3}, op), HasSubstr("padding"));
    EXPECT_THAT(Declines({1, 8, 8, 3, 16, 1}, op), HasSubstr("channels"));
    EXPECT_THAT(Declines({1, 8, 8, 16, 7, 1}, op), HasSubstr("channels"));
    EXPECT_THAT(Declines({0, 8, 8, 16, 16, 1}, op), HasSubstr("empty"));
  }
}

// Norm of the difference from the exact result.
double Error(const PreparedCase& prepared, const Kernel& kernel,
             const std::vector<ReferenceTensor<double>>& inputs,
             const std::vector<ReferenceTensor<double>>& exact) {
  const auto outputs = RunKernel(prepared, kernel, inputs, {});
  std::vector<float> numbers(exact[0].numbers.size());
  std::memcpy(numbers.data(), outputs[0].data(), outputs[0].size());
  double sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) sum += std::pow(numbers[i] - exact[0].numbers[i], 2);
  return std::sqrt(sum);
}

// docs/techniques/winograd.md quotes these ratios.
TEST(WinogradTest, ErrorsAreAFewTimesThoseOfPlainSums) {
  for (const std::string& op : kWinogradOps) {
    const OpCase op_case = Filters{2, 16, 16, 64, 64, 1}.Case(op);
    const PreparedCase prepared(op_case);
    auto inputs = RandomInputs(prepared, 1.0);
    const auto exact = RunReferenceOp<double>(prepared.op, prepared.call(), inputs);
    const double winograd = Error(prepared, WinogradKernel(op), inputs, exact);
    const double plain = Error(prepared, prepared.op.kernels().back(), inputs, exact);
    EXPECT_GT(winograd, 0);
    EXPECT_LT(winograd, 4 * plain) << op;
    RecordProperty(op + "_ratio", std::to_string(winograd / plain));
  }
}

// Tiles, channels and out channels of the layers of wrn-28-2 and wrn-28-10, large batch and small.
const std::vector<WinogradShape> kWinogradShapes = {
    {6400, 16, 32}, {6400, 32, 32},  {1600, 64, 64},   {400, 128, 128}, {40, 128, 128},
    {4, 128, 128},  {6400, 16, 160}, {6400, 160, 160}, {400, 640, 640}};

// The same shapes with results of 32 and 16 bits.
std::vector<WinogradShape> ShapesOfBothSizes() {
  std::vector<WinogradShape> shapes = kWinogradShapes;
  for (WinogradShape shape : kWinogradShapes) {
    shape.short_results = true;
    shapes.push_back(shape);
  }
  return shapes;
}

TEST(WinogradBlocksTest, AMebibytePerThreadIsEnough) {
  for (const WinogradShape& shape : ShapesOfBothSizes()) {
    for (size_t threads : {1, 2, 3, 16}) {
      const size_t limit = threads << 20;
      EXPECT_LE(ChooseWinogradBlocks(shape, threads, limit).ScratchBytes(threads), limit);
      EXPECT_LE(ChooseWinogradGradientBlocks(shape, threads, limit).ScratchBytes(threads), limit);
    }
  }
}

void ExpectSame(const WinogradBlocks& again, const WinogradBlocks& blocks) {
  EXPECT_EQ(again.tiles, blocks.tiles);
  EXPECT_EQ(again.channels, blocks.channels);
  EXPECT_EQ(again.out_channels, blocks.out_channels);
  EXPECT_EQ(again.region, blocks.region);
}

TEST(WinogradBlocksTest, AskedAgainWithTheirOwnBytesAreTheSame) {
  for (const WinogradShape& shape : ShapesOfBothSizes()) {
    for (size_t threads : {1, 2, 3}) {
      for (size_t limit = 1; limit <= size_t{8} << 20; limit *= 2) {
        const WinogradBlocks blocks = ChooseWinogradBlocks(shape, threads, limit);
        ExpectSame(ChooseWinogradBlocks(shape, threads, blocks.ScratchBytes(threads)), blocks);
        const WinogradBlocks gradient = ChooseWinogradGradientBlocks(shape, threads, limit);
        ExpectSame(ChooseWinogradGradientBlocks(shape, threads, gradient.ScratchBytes(threads)),
                   gradient);
      }
    }
  }
}

}  // namespace

std::vector<OpCase> WinogradCases() {
  std::vector<OpCase> cases;
  for (const Filters& filters : kFilters) {
    for (const std::string& op : kWinogradOps) cases.push_back(filters.Case(op));
  }
  // Each tensor with a type of its own.
  for (const std::string& op : kWinogradOps) {
    for (const Filters& filters : {kFilters[3], kFilters[6], kFilters[9]}) {
      cases.push_back(filters.Case(op));
      cases.back().number_types = {DType::kBF16, DType::kF32, DType::kF16};
    }
  }
  return cases;
}

}  // namespace thimble
