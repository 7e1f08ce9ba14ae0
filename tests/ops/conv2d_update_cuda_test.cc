// conv2d_update on a GPU: the gradient that is used at once gives the bits that the kernels of
// conv2d_grad_weight and of the op that uses it give, for dense and packed arrays.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/case_sample.h"
#include "tests/support/cuda_copies.h"
#include "tests/support/packed_pool.h"
#include "tests/support/update_arrays.h"

namespace thimble {
namespace {

struct CudaUpdateSizes {
  int64_t batch, size, channels, out_channels, kernel, stride;

  int64_t padding() const { return kernel / 2; }
  int64_t out_size() const { return (size + 2 * padding() - kernel) / stride + 1; }
  Shape x() const { return {batch, size, size, channels}; }
  Shape dy() const { return {batch, out_size(), out_size(), out_channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
};
constexpr CudaUpdateSizes kCudaUpdateSizes[] = {
    {2, 6, 7, 17, 3, 2},      // odd numbers of channels
    {2, 8, 33, 71, 1, 1},     // parts that end within blocks of q8
    {10, 32, 3, 16, 3, 1},    // layers of wrn-28-2: the stem,
    {10, 32, 32, 32, 3, 1},   // copies of dw in scratch,
    {10, 16, 64, 64, 3, 1},   // wide kernels,
    {10, 8, 128, 128, 3, 1},  // two parts if the momentum is q8,
    {10, 16, 64, 128, 1, 2},  // a shortcut
    {1, 6, 104, 200, 3, 1},   // four parts
    {100, 4, 64, 192, 3, 1},  // wide, with copies
    {1, 4, 8, 80, 5, 1},      // a kernel that only the plain ones support
    {0, 4, 9, 40, 3, 1},      // no sample
};

struct CudaUpdateSetting {
  std::string first;  // the kernel of conv2d_grad_weight, without its device
  DType images;
  double density;  // above 1: dense arrays
  DType gradient, weights, momentum;
  bool stochastic;
};
const CudaUpdateSetting kCudaUpdateSettings[] = {
    {"Tf32", DType::kF32, 2, DType::kF32, DType::kF32, DType::kF32, false},
    {"Tf32", DType::kF32, 0.2, DType::kF32, DType::kF32, DType::kF32, false},
    {"Tf32", DType::kF32, 0.05, DType::kF16, DType::kF32, DType::kQ8, false},
    {"Tf32", DType::kF32, 1, DType::kBF16, DType::kBF16, DType::kBF16, true},
    {"Fp32", DType::kF32, 2, DType::kF32, DType::kF32, DType::kQ8, false},
    {"Fp32", DType::kF32, 0.2, DType::kF32, DType::kBF16, DType::kF32, true},
    {"Plain", DType::kF32, 0.2, DType::kF32, DType::kF32, DType::kF32, false},
    {"Plain", DType::kF16, 0.5, DType::kF16, DType::kF16, DType::kQ8, true},
    {"Short", DType::kF16, 2, DType::kF16, DType::kF16, DType::kF16, false},
    {"Short", DType::kF16, 0.2, DType::kF16, DType::kF16, DType::kF16, false},
    {"Short", DType::kF16, 0, DType::kF32, DType::kF32, DType::kF32, false},
    {"Short", DType::kBF16, 2, DType::kBF16, DType::kBF16, DType::kQ8, true},
    {"Short", DType::kBF16, 0, DType::kBF16, DType::kBF16, DType::kQ8, true},
    {"Short", DType::kBF16, 0.05, DType::kBF16, DType::kBF16, DType::kBF16, true},
    {"Short", DType::kBF16, 0.2, DType::kF32, DType::kBF16, DType::kQ8, true},
    {"Short", DType::kBF16, 1, DType::kF32, DType::kF32, DType::kQ8, false},
    {"Short", DType::kF16, 1, DType::kF32, DType::kF32, DType::kF32, false},
};

// Which part of a batch it is, and whether the update is skipped.
struct CudaUpdateOccasion {
  int seen;
  float factor;
};

class CudaUpdateRun {
 public:
  using Arrays = std::vector<std::unique_ptr<UpdateArray>>;

  CudaUpdateRun(const UpdateOp& op, const CudaUpdateSizes& sizes, const CudaUpdateSetting& setting,
                const CudaUpdateOccasion& occasion)
      : op_(op),
        sizes_(sizes),
        setting_(setting),
        x_(sizes.x(), setting.images, HashedNumbers(sizes.x().elements(), 1)),
        dy_(sizes.dy(), setting.images, HashedNumbers(sizes.dy().elements(), 2)),
        rate_(Shape{1}, DType::kF32, {0.1F}),
        seen_(TestTensor::Integer(occasion.seen)),
        update_(TestTensor::Integer(3)),
        factor_(Shape{1}, DType::kF32, {occasion.factor}) {
    if (setting.density <= 1) {
      pattern_.emplace(std::vector<int64_t>{261, sizes.w().elements(), 100}, setting.density,
                       /*seed=*/12);
    }
  }

  // False if the first op has no such kernel for this call.
  bool IsPossible() {
    const OpDef& op = BuiltinOps().Get("conv2d_grad_weight");
    Attributes all = op.default_attributes();
    for (const char* name : {"stride", "padding", "kernel_height", "kernel_width"}) {
      all.Set(name, attributes().Int(name));
    }
    const Shape inputs[] = {sizes_.x(), sizes_.dy()};
    const Shape output = sizes_.w();
    const DType types[] = {setting_.images, setting_.images};
    for (const Kernel& kernel : op.kernels()) {
      if (kernel.name != "Conv2dGradWeight" + setting_.first + "Cuda") continue;
      return kernel.declines({inputs, {&output, 1}, all, types, {&setting_.gradient, 1}}).empty();
    }
    return false;
  }

  // The arrays that were written, with their guards and the other tensors of their pools.
  Arrays RunTwo() {
    CudaCopies copies;
    UpdateArray dw(pattern(), sizes_.w(), setting_.gradient);
    CallKernel({"conv2d_grad_weight",
                "Conv2dGradWeight" + setting_.first + "Cuda",
                {copies.View(x_), copies.View(dy_)},
                {dw.View(copies)},
                attributes()},
               {});
    return Run(op_.name, op_.kernel + "Cuda", copies, {}, {dw.View(copies)}, /*in_place=*/false);
  }
  Arrays RunOne(bool in_place) {
    CudaCopies copies;
    return Run("conv2d_" + op_.name, "Conv2d" + op_.kernel + setting_.first + "Cuda", copies,
               {copies.View(x_), copies.View(dy_)}, {}, in_place);
  }

 private:
  const TestPattern* pattern() const { return pattern_ ? &*pattern_ : nullptr; }
  Attributes attributes() const {
    return {{"stride", sizes_.stride},
            {"padding", sizes_.padding()},
            {"kernel_height", sizes_.kernel},
            {"kernel_width", sizes_.kernel},
            {"gradient_type", static_cast<int64_t>(setting_.gradient)},
            {"momentum", 0.9},
            {"weight_decay", 1e-2},
            {"nesterov", int64_t{1}},
            {"feedback_rate", setting_.stochastic ? 0.01 : 0.0},
            {"stochastic", int64_t{setting_.stochastic}},
            {"seed", int64_t{8}},
            {"stream", int64_t{70005}}};
  }

  Arrays Run(const std::string& op, const std::string& kernel, CudaCopies& copies,
             std::vector<TensorView> inputs, const std::vector<TensorView>& gradient,
             bool in_place) {
    const auto array = [&](DType type, auto... stream) {
      return std::make_unique<UpdateArray>(pattern(), sizes_.w(), type, stream...);
    };
    auto weight = array(setting_.weights, 3U);
    auto momentum = array(setting_.momentum, 4U);
    inputs.push_back(weight->View(copies));
    inputs.insert(inputs.end(), gradient.begin(), gradient.end());
    if (op_.has_momentum) inputs.push_back(momentum->View(copies));
    inputs.push_back(copies.View(op_.has_rate ? rate_ : seen_));
    if (op_.has_factor) inputs.insert(inputs.end(), {copies.View(update_), copies.View(factor_)});
    Arrays written;
    const auto add = [&](std::unique_ptr<UpdateArray>& old, DType type) {
      written.push_back(in_place ? std::move(old) : array(type));
    };
    if (op_.writes_weight) add(weight, setting_.weights);
    if (op_.writes_momentum) add(momentum, setting_.momentum);
    std::vector<TensorView> outputs;
    for (const auto& own : written) outputs.push_back(own->View(copies));
    CallKernel({op, kernel, inputs, outputs, attributes()}, {});
    // Arrays that are only read must outlive the copies.
    copies.Return();
    return written;
  }

  const UpdateOp& op_;
  const CudaUpdateSizes& sizes_;
  const CudaUpdateSetting& setting_;
  std::optional<TestPattern> pattern_;
  TestTensor x_, dy_, rate_, seen_, update_, factor_;
};

bool HaveSameBytes(UpdateArray& a, UpdateArray& b) {
  const auto left = a.bytes_and_guards();
  const auto right = b.bytes_and_guards();
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size()) == 0;
}

// In place, what is not written has the bytes of the array that was read: there the numbers of the
// tensor are compared.
bool HaveSameNumbers(UpdateArray& a, UpdateArray& b) { return a.Bytes() == b.Bytes(); }

void CheckCudaUpdate(const UpdateOp& op, const CudaUpdateSizes& sizes,
                     const CudaUpdateSetting& setting, const CudaUpdateOccasion& occasion) {
  if (!NextCaseRuns()) return;
  CudaUpdateRun run(op, sizes, setting, occasion);
  if (!run.IsPossible()) return;
  const auto expected = run.RunTwo();
  const auto actual = run.RunOne(/*in_place=*/false);
  const auto in_place = run.RunOne(/*in_place=*/true);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(HaveSameBytes(*actual[i], *expected[i]) &&
                HaveSameNumbers(*in_place[i], *expected[i]) && in_place[i]->OthersIntact())
        << "conv2d_" << op.name << ", output " << i << ", kernel " << setting.first
        << " of weights " << ToString(sizes.w()) << ", density " << setting.density << ", types "
        << Name(setting.images) << " " << Name(setting.gradient) << " " << Name(setting.weights)
        << " " << Name(setting.momentum) << ", seen " << occasion.seen << ", factor "
        << occasion.factor;
  }
}

TEST(CudaConv2dUpdate, HasTheBitsOfBothOps) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const CudaUpdateSetting& setting : kCudaUpdateSettings) {
    for (const CudaUpdateSizes& sizes : kCudaUpdateSizes) {
      for (const UpdateOp& op : kUpdateOps) CheckCudaUpdate(op, sizes, setting, {0, 0.5F});
    }
  }
}

// Later parts of a batch, and updates that are skipped.
TEST(CudaConv2dUpdate, HasTheBitsOfBothOpsForOtherParts) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const CudaUpdateSetting& setting : kCudaUpdateSettings) {
    for (const UpdateOp& op : kUpdateOps) {
      for (const CudaUpdateOccasion& occasion :
           {CudaUpdateOccasion{10, 0.5F}, {10, 0.0F}, {0, 0.0F}}) {
        CheckCudaUpdate(op, kCudaUpdateSizes[1], setting, occasion);
        CheckCudaUpdate(op, kCudaUpdateSizes[7], setting, occasion);
      }
    }
  }
}

// What is not there costs nothing: scratch is that of conv2d_grad_weight, and with q8 a part.
TEST(CudaConv2dUpdate, NeedsNoScratchForAWholeGradient) {
  const CudaUpdateSizes sizes{10, 8, 128, 128, 3, 1};
  const OpDef& op = BuiltinOps().Get("conv2d_sgd_update");
  Attributes attributes = op.default_attributes();
  attributes.Set("kernel_height", int64_t{3});
  attributes.Set("kernel_width", int64_t{3});
  attributes.Set("padding", int64_t{1});
  attributes.Set("gradient_type", static_cast<int64_t>(DType::kF16));
  const std::vector<Shape> inputs = {sizes.x(), sizes.dy(), sizes.w(), sizes.w(), Shape{1}};
  const std::vector<Shape> outputs = {sizes.w(), sizes.w()};
  const auto scratch_bytes = [&](DType momentum) {
    const std::vector<DType> in = {DType::kF16, DType::kF16, DType::kF16, momentum, DType::kF32};
    const std::vector<DType> out = {DType::kF16, momentum};
    for (const Kernel& kernel : op.kernels()) {
      if (kernel.name != "Conv2dSgdUpdateShortCuda") continue;
      const OpCall call{inputs, outputs, attributes, in, out};
      EXPECT_EQ(kernel.declines(call), "");
      return kernel.scratch_bytes(call, {});
    }
    return SIZE_MAX;
  };
  if (scratch_bytes(DType::kF16) == SIZE_MAX) GTEST_SKIP() << "built without CUDA";
  EXPECT_EQ(scratch_bytes(DType::kF16), 0U);
  // 64 of 128 output channels in f16, and one block.
  EXPECT_EQ(scratch_bytes(DType::kQ8), 2 * (size_t{64} * 9 * 128 + 256) + 4);
}

}  // namespace
}  // namespace thimble
