// Convolutions that read x through a norm: against the formulas, and bit for bit against the norm
// and the convolution one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/packed_pool.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

using testing::HasSubstr;

struct NormedConvolution {
  int64_t batch, height, width, channels, out_channels, kernel, stride, padding;

  Shape x() const { return {batch, height, width, channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
  Shape c() const { return {channels}; }
  Shape y() const {
    return {batch, (height + 2 * padding - kernel) / stride + 1,
            (width + 2 * padding - kernel) / stride + 1, out_channels};
  }
  Attributes attributes() const { return {{"stride", stride}, {"padding", padding}}; }
  Attributes weight_attributes() const {
    Attributes attributes = this->attributes();
    attributes.Set("kernel_height", kernel);
    attributes.Set("kernel_width", kernel);
    return attributes;
  }

  // x and the constants of the norm, then the rest of the convolution's inputs.
  OpCase Reading(const std::string& op, std::vector<Shape> rest, Attributes attributes) const {
    OpCase op_case{.op = op, .inputs = {x(), c(), c(), c(), c()}, .positive_inputs = {1, 4}};
    op_case.inputs.insert(op_case.inputs.end(), rest.begin(), rest.end());
    op_case.attributes = std::move(attributes);
    return op_case;
  }
  OpCase Forward() const { return Reading("norm_conv2d", {w()}, attributes()); }
  OpCase ForwardAdd() const { return Reading("norm_conv2d_add", {w(), y()}, attributes()); }
  OpCase Weight() const { return Reading("norm_conv2d_grad_weight", {y()}, weight_attributes()); }
  OpCase Accumulate() const {
    OpCase op_case = Reading("norm_conv2d_accumulate", {y(), w(), Shape{1}}, weight_attributes());
    op_case.integer_bound = 1 << 20;
    return op_case;
  }
  OpCase Gather() const {
    Attributes attributes = weight_attributes();
    attributes.Set("momentum", 0.9);
    attributes.Set("weight_decay", 1e-2);
    OpCase op_case =
        Reading("norm_conv2d_sgd_gather", {y(), w(), w(), Shape{1}}, std::move(attributes));
    op_case.integer_bound = 9;
    return op_case;
  }
  OpCase Update() const {
    Attributes attributes = weight_attributes();
    attributes.Set("momentum", 0.9);
    OpCase op_case =
        Reading("norm_conv2d_sgd_update", {y(), w(), w(), Shape{1}}, std::move(attributes));
    op_case.positive_inputs.push_back(8);
    return op_case;
  }
  OpCase UpdatePlain() const {
    OpCase op_case =
        Reading("norm_conv2d_sgd_update_plain", {y(), w(), Shape{1}}, weight_attributes());
    op_case.positive_inputs.push_back(7);
    return op_case;
  }
  OpCase Gradient(bool adds) const {
    OpCase op_case{.op = "norm_conv2d_grad_input",
                   .inputs = {w(), y(), x(), c(), c(), c(), c()},
                   .attributes = attributes(),
                   .positive_inputs = {3, 6}};
    if (adds) op_case.inputs.push_back(x());
    op_case.shared_sum_size = static_cast<double>(batch * height * width);
    return op_case;
  }
  // With a second convolution, of one tap.
  OpCase PairGradient() const {
    const NormedConvolution second{batch, height, width, channels, out_channels, 1, stride, 0};
    OpCase op_case = Gradient(false);
    op_case.op = "norm_conv2d_grad_input_pair";
    op_case.inputs.push_back(second.w());
    op_case.inputs.push_back(second.y());
    op_case.attributes.Set("second_stride", stride);
    return op_case;
  }
};

OpCase WithNormRelu(OpCase op_case) {
  op_case.attributes.Set("relu", int64_t{1});
  return op_case;
}

NormedConvolution RandomNormed(CaseDraw& draw) {
  NormedConvolution c{};
  c.batch = draw.OneIn(24) ? 0 : draw.Between(1, 3);
  c.channels = draw.Size(24);
  c.out_channels = draw.Size(40);
  c.kernel = draw.Between(1, 3);
  c.stride = draw.Between(1, 2);
  c.padding = draw.Between(0, 1);
  c.height = draw.Between(3, 9);
  c.width = draw.Between(3, 9);
  return c;
}
OpCase MaybeWithNormRelu(CaseDraw& draw, OpCase op_case) {
  return draw.OneIn(2) ? WithNormRelu(std::move(op_case)) : op_case;
}

}  // namespace

std::vector<OpCase> NormConv2dCases() {
  std::vector<OpCase> cases;
  // Columns: batch, height, width, channels, out channels, kernel, stride, padding.
  for (const NormedConvolution& c : std::vector<NormedConvolution>{
           {1, 1, 1, 1, 1, 1, 1, 0},     // everything one
           {0, 4, 4, 3, 5, 3, 1, 1},     // an empty batch
           {2, 6, 5, 7, 17, 3, 2, 1},    // odd numbers
           {3, 16, 16, 16, 32, 3, 1, 1}  // several parts
       }) {
    for (const OpCase& op_case :
         {c.Forward(), c.ForwardAdd(), c.Weight(), c.Accumulate(), c.Gather(), c.Update(),
          c.UpdatePlain(), c.Gradient(false), c.Gradient(true), c.PairGradient()}) {
      cases.push_back(op_case);
      cases.push_back(WithNormRelu(op_case));
    }
  }
  return cases;
}

OpCase Random_norm_conv2d(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).Forward());
}
OpCase Random_norm_conv2d_accumulate(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).Accumulate());
}
OpCase Random_norm_conv2d_add(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).ForwardAdd());
}
OpCase Random_norm_conv2d_grad_input(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).Gradient(draw.OneIn(2)));
}
OpCase Random_norm_conv2d_grad_input_pair(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).PairGradient());
}
OpCase Random_norm_conv2d_grad_weight(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).Weight());
}
OpCase Random_norm_conv2d_sgd_gather(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).Gather());
}
OpCase Random_norm_conv2d_sgd_update(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).Update());
}
OpCase Random_norm_conv2d_sgd_update_plain(CaseDraw& draw) {
  return MaybeWithNormRelu(draw, RandomNormed(draw).UpdatePlain());
}

namespace {

// The tensors of a norm and a convolution, in fp16, and the ops that work on them.
class NormedRun {
 public:
  NormedRun(const NormedConvolution& sizes, bool relu)
      : sizes_(sizes),
        relu_(relu),
        x_(Hashed(sizes.x(), DType::kF16, 1)),
        w_(Hashed(sizes.w(), DType::kF16, 2)),
        dy_(Hashed(sizes.y(), DType::kF16, 3)),
        other_(Hashed(sizes.x(), DType::kF16, 4)),
        gamma_(Hashed(sizes.c(), DType::kF32, 5)),
        beta_(Hashed(sizes.c(), DType::kF32, 6)),
        mean_(Hashed(sizes.c(), DType::kF32, 7)),
        variance_(sizes.c(), DType::kF32,
                  std::vector<float>(static_cast<size_t>(sizes.channels), 0.4F)) {}

  void CheckForward(const KernelLimits& limits) {
    TestTensor y = Normalized();
    TestTensor expected(sizes_.y(), DType::kF16);
    Call("conv2d", "Conv2dCpu", {y.View(), w_.View()}, {expected.View()}, {});
    TestTensor actual(sizes_.y(), DType::kF16);
    Call("norm_conv2d", "NormConv2dCpu", Read({w_.View()}), {actual.View()}, limits);
    EXPECT_EQ(expected.Numbers(), actual.Numbers());
  }
  // In place of what is added.
  void CheckForwardAdd(const KernelLimits& limits) {
    TestTensor y = Normalized();
    TestTensor expected(sizes_.y(), DType::kF16);
    Call("conv2d_add", "Conv2dAddCpu", {y.View(), w_.View(), dy_.View()}, {expected.View()}, {});
    TestTensor sum(sizes_.y(), DType::kF16, dy_.Numbers());
    Call("norm_conv2d_add", "NormConv2dAddCpu", Read({w_.View(), sum.View()}), {sum.View()},
         limits);
    EXPECT_EQ(expected.Numbers(), sum.Numbers());
  }
  void CheckWeight(const KernelLimits& limits) {
    TestTensor y = Normalized();
    TestTensor expected(sizes_.w(), DType::kF32);
    Call("conv2d_grad_weight", "Conv2dGradWeightCpu", {y.View(), dy_.View()}, {expected.View()},
         {});
    TestTensor actual(sizes_.w(), DType::kF32);
    Call("norm_conv2d_grad_weight", "NormConv2dGradWeightCpu", Read({dy_.View()}), {actual.View()},
         limits);
    EXPECT_EQ(expected.Numbers(), actual.Numbers());
  }
  void CheckGather(const KernelLimits& limits) {
    TestTensor y = Normalized();
    TestTensor seen = TestTensor::Integer(3);
    TestTensor momentum = Hashed(sizes_.w(), DType::kF16, 8);
    TestTensor expected(sizes_.w(), DType::kF16);
    Call("conv2d_sgd_gather", "Conv2dSgdGatherCpu",
         {y.View(), dy_.View(), w_.View(), momentum.View(), seen.View()}, {expected.View()}, {});
    TestTensor actual(sizes_.w(), DType::kF16);
    Call("norm_conv2d_sgd_gather", "NormConv2dSgdGatherCpu",
         Read({dy_.View(), w_.View(), momentum.View(), seen.View()}), {actual.View()}, limits);
    EXPECT_EQ(expected.Numbers(), actual.Numbers());
  }

  struct Gradient {
    TestTensor dx, dgamma, dbeta;
    std::vector<TensorView> Views() { return {dx.View(), dgamma.View(), dbeta.View()}; }
  };
  // In place of x, or of what is added.
  void CheckGradient(const KernelLimits& limits, bool adds) {
    Gradient expected = TwoOps(Between(w_, dy_, sizes_), adds);
    Gradient actual{TestTensor(sizes_.x(), DType::kF16, (adds ? other_ : x_).Numbers()),
                    TestTensor(sizes_.c(), DType::kF32), TestTensor(sizes_.c(), DType::kF32)};
    std::vector<TensorView> inputs = GradientInputs(adds ? x_ : actual.dx);
    if (adds) inputs.push_back(actual.dx.View());
    Call("norm_conv2d_grad_input", "NormConv2dGradInputCpu", inputs, actual.Views(), limits);
    ExpectEqual(expected, actual);
  }
  void CheckPairGradient(const KernelLimits& limits) {
    const NormedConvolution second{sizes_.batch,    sizes_.height,       sizes_.width,
                                   sizes_.channels, sizes_.out_channels,
                                   /*kernel=*/1,    sizes_.stride,       /*padding=*/0};
    TestTensor second_w = Hashed(second.w(), DType::kF16, 9);
    TestTensor second_dy = Hashed(second.y(), DType::kF16, 10);
    TestTensor first_part = Between(w_, dy_, sizes_);
    TestTensor second_part = Between(second_w, second_dy, second);
    TestTensor sum(sizes_.x(), DType::kF16);
    Call("add", "AddCpu", {first_part.View(), second_part.View()}, {sum.View()}, {});
    Gradient expected = TwoOps(std::move(sum), /*adds=*/false);
    Gradient actual{TestTensor(sizes_.x(), DType::kF16, x_.Numbers()),
                    TestTensor(sizes_.c(), DType::kF32), TestTensor(sizes_.c(), DType::kF32)};
    std::vector<TensorView> inputs = GradientInputs(actual.dx);
    inputs.push_back(second_w.View());
    inputs.push_back(second_dy.View());
    Call("norm_conv2d_grad_input_pair", "NormConv2dGradInputPairCpu", inputs, actual.Views(),
         limits);
    ExpectEqual(expected, actual);
  }

 private:
  static TestTensor Hashed(const Shape& shape, DType dtype, uint32_t stream) {
    return {shape, dtype, HashedNumbers(shape.elements(), stream)};
  }

  void Call(const char* op, const char* kernel, const std::vector<TensorView>& inputs,
            const std::vector<TensorView>& outputs, const KernelLimits& limits) const {
    const int64_t f16 = static_cast<int64_t>(DType::kF16);
    CallKernel({op,
                kernel,
                inputs,
                outputs,
                {{"stride", sizes_.stride},
                 {"padding", sizes_.padding},
                 {"kernel_height", sizes_.kernel},
                 {"kernel_width", sizes_.kernel},
                 {"height", sizes_.height},
                 {"width", sizes_.width},
                 {"second_stride", sizes_.stride},
                 {"momentum", 0.9},
                 {"relu", int64_t{relu_}},
                 {"norm_type", f16},
                 {"gradient_type", op == std::string("conv2d_sgd_gather") ||
                                           op == std::string("norm_conv2d_sgd_gather")
                                       ? int64_t{0}
                                       : f16}}},
               limits);
  }
  TestTensor Normalized() {
    TestTensor y(sizes_.x(), DType::kF16);
    Call("batch_norm_eval", "BatchNormEvalCpu", Read({}), {y.View()}, {});
    return y;
  }
  std::vector<TensorView> Read(const std::vector<TensorView>& rest) {
    std::vector<TensorView> inputs = {x_.View(), gamma_.View(), beta_.View(), mean_.View(),
                                      variance_.View()};
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    return inputs;
  }
  TestTensor Between(TestTensor& w, TestTensor& dy, const NormedConvolution& sizes) const {
    TestTensor dx(sizes.x(), DType::kF16);
    CallKernel({"conv2d_grad_input",
                "Conv2dGradInputCpu",
                {w.View(), dy.View()},
                {dx.View()},
                {{"stride", sizes.stride},
                 {"padding", sizes.padding},
                 {"height", sizes.height},
                 {"width", sizes.width}}},
               {});
    return dx;
  }
  Gradient TwoOps(TestTensor between, bool adds) {
    Gradient gradient{TestTensor(sizes_.x(), DType::kF16), TestTensor(sizes_.c(), DType::kF32),
                      TestTensor(sizes_.c(), DType::kF32)};
    std::vector<TensorView> inputs = Read({between.View()});
    if (adds) inputs.push_back(other_.View());
    Call(adds ? "batch_norm_grad_add" : "batch_norm_grad",
         adds ? "BatchNormGradAddCpu" : "BatchNormGradCpu", inputs, gradient.Views(), {});
    return gradient;
  }
  std::vector<TensorView> GradientInputs(TestTensor& x) {
    return {w_.View(),    dy_.View(),   x.View(),        gamma_.View(),
            beta_.View(), mean_.View(), variance_.View()};
  }
  static void ExpectEqual(Gradient& expected, Gradient& actual) {
    EXPECT_EQ(expected.dx.Numbers(), actual.dx.Numbers());
    EXPECT_EQ(expected.dgamma.Numbers(), actual.dgamma.Numbers());
    EXPECT_EQ(expected.dbeta.Numbers(), actual.dbeta.Numbers());
  }

  const NormedConvolution& sizes_;
  bool relu_;
  TestTensor x_, w_, dy_, other_, gamma_, beta_, mean_, variance_;
};

TEST(NormConv2d, HasTheBitsOfNormAndConvolution) {
  // Pieces of one sample, of several (80 rows in chunks of 128), and of all.
  const std::vector<NormedConvolution> all_sizes = {{2, 7, 5, 3, 6, 3, 2, 1},
                                                    {3, 16, 16, 64, 33, 3, 1, 1},
                                                    {5, 8, 8, 128, 16, 3, 1, 1},
                                                    {4, 6, 6, 17, 20, 1, 1, 0},
                                                    {6, 40, 40, 19, 9, 3, 1, 1}};
  const KernelLimits all_limits[] = {{1, size_t{1} << 20}, {3, size_t{1} << 15}};
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    for (const NormedConvolution& sizes : all_sizes) {
      for (const KernelLimits& limits : all_limits) {
        SCOPED_TRACE(target + ", x " + ToString(sizes.x()) + ", " + std::to_string(limits.threads) +
                     " threads");
        NormedRun run(sizes, /*relu=*/limits.threads == 1);
        run.CheckForward(limits);
        run.CheckForwardAdd(limits);
        run.CheckWeight(limits);
        run.CheckGather(limits);
        run.CheckGradient(limits, /*adds=*/false);
        run.CheckGradient(limits, /*adds=*/true);
        run.CheckPairGradient(limits);
      }
    }
  }
}

TEST(NormConv2d, ChecksTheConstantsOfTheNorm) {
  const NormedConvolution c{2, 6, 5, 7, 17, 3, 2, 1};
  OpCase wrong = c.Forward();
  wrong.inputs[3] = Shape{8};
  EXPECT_THAT(ShapeError(wrong), HasSubstr("'mean' has shape (8), expected (7)"));
  OpCase other = c.Gradient(true);
  other.inputs[7] = Shape{2, 6, 6, 7};
  EXPECT_THAT(ShapeError(other), HasSubstr("'other' has shape (2, 6, 6, 7)"));
  OpCase group = c.Gradient(false);
  group.attributes.Set("group", int64_t{2});
  EXPECT_THAT(ShapeError(group), HasSubstr("group: only 0"));
}

}  // namespace
}  // namespace thimble
