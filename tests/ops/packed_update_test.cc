// conv2d_update: the gradient that is used at once gives the bits that conv2d_grad_weight in f32
// and the op that uses it give, for dense and packed arrays.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/packed_pool.h"
#include "tests/support/update_arrays.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

struct UpdateSetting {
  double density;  // above 1: dense arrays
  DType images, weights, momentum;
  bool stochastic;
};
constexpr UpdateSetting kUpdateSettings[] = {
    {2.0, DType::kF32, DType::kF32, DType::kF32, false},
    {2.0, DType::kBF16, DType::kBF16, DType::kQ8, true},
    {0.0, DType::kF32, DType::kF32, DType::kQ8, false},
    {0.05, DType::kF32, DType::kF16, DType::kQ8, true},
    {0.2, DType::kF32, DType::kF32, DType::kF32, false},
    {0.2, DType::kBF16, DType::kBF16, DType::kQ8, true},
    {0.5, DType::kF16, DType::kF16, DType::kF16, false},
    {1.0, DType::kBF16, DType::kBF16, DType::kBF16, true},
};

struct UpdateSizes {
  int64_t batch, size, channels, out_channels, kernel, stride;

  int64_t padding() const { return kernel / 2; }
  int64_t out_size() const { return (size + 2 * padding() - kernel) / stride + 1; }
  Shape x() const { return {batch, size, size, channels}; }
  Shape dy() const { return {batch, out_size(), out_size(), out_channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
};
// Ranges end within blocks of q8; the numbers of channels are odd, or fit for tiles.
constexpr UpdateSizes kUpdateSizes[] = {{2, 6, 7, 17, 3, 2},
                                        {2, 8, 33, 71, 1, 1},
                                        {3, 16, 16, 80, 3, 1},
                                        {2, 4, 3, 5, 3, 1},
                                        {0, 4, 9, 40, 3, 1}};

// The tensors of one call of an update, and both ways to compute it.
class UpdateRun {
 public:
  UpdateRun(const UpdateOp& op, const UpdateSizes& sizes, const UpdateSetting& setting, int seen,
            float factor)
      : op_(op),
        sizes_(sizes),
        setting_(setting),
        x_(sizes.x(), setting.images, HashedNumbers(sizes.x().elements(), 1)),
        dy_(sizes.dy(), setting.images, HashedNumbers(sizes.dy().elements(), 2)),
        rate_(Shape{1}, DType::kF32, {0.1F}),
        seen_(TestTensor::Integer(seen)),
        update_(TestTensor::Integer(3)),
        factor_(Shape{1}, DType::kF32, {factor}) {
    if (setting.density <= 1) {
      pattern_.emplace(std::vector<int64_t>{261, sizes.w().elements(), 100}, setting.density,
                       /*seed=*/12);
    }
  }

  // The bytes of the outputs, from two ops and from one.
  std::vector<std::vector<std::byte>> RunTwo() {
    UpdateArray dw(pattern(), sizes_.w(), DType::kF32);
    CallKernel({"conv2d_grad_weight",
                "Conv2dGradWeightCpu",
                {x_.View(), dy_.View()},
                {dw.View()},
                attributes()},
               {});
    return Run(op_.name, op_.kernel + "Cpu", {}, {dw.View()}, {}, /*in_place=*/false);
  }
  std::vector<std::vector<std::byte>> RunOne(const KernelLimits& limits, bool in_place) {
    return Run("conv2d_" + op_.name, "Conv2d" + op_.kernel + "Cpu", {x_.View(), dy_.View()}, {},
               limits, in_place);
  }

 private:
  const TestPattern* pattern() const { return pattern_ ? &*pattern_ : nullptr; }
  Attributes attributes() const {
    return {{"stride", sizes_.stride},
            {"padding", sizes_.padding()},
            {"kernel_height", sizes_.kernel},
            {"kernel_width", sizes_.kernel},
            {"momentum", 0.9},
            {"weight_decay", 1e-2},
            {"nesterov", int64_t{1}},
            {"feedback_rate", setting_.stochastic ? 0.01 : 0.0},
            {"stochastic", int64_t{setting_.stochastic}},
            {"stream", int64_t{5}}};
  }

  std::vector<std::vector<std::byte>> Run(const std::string& op, const std::string& kernel,
                                          std::vector<TensorView> inputs,
                                          const std::vector<TensorView>& gradient,
                                          const KernelLimits& limits, bool in_place) {
    UpdateArray weight(pattern(), sizes_.w(), setting_.weights, /*stream=*/3);
    UpdateArray momentum(pattern(), sizes_.w(), setting_.momentum, /*stream=*/4);
    UpdateArray next_weight(pattern(), sizes_.w(), setting_.weights);
    UpdateArray next_momentum(pattern(), sizes_.w(), setting_.momentum);
    inputs.push_back(weight.View());
    inputs.insert(inputs.end(), gradient.begin(), gradient.end());
    if (op_.has_momentum) inputs.push_back(momentum.View());
    inputs.push_back(op_.has_rate ? rate_.View() : seen_.View());
    if (op_.has_factor) inputs.insert(inputs.end(), {update_.View(), factor_.View()});
    std::vector<UpdateArray*> written;
    if (op_.writes_weight) written.push_back(in_place ? &weight : &next_weight);
    if (op_.writes_momentum) written.push_back(in_place ? &momentum : &next_momentum);
    std::vector<TensorView> outputs;
    for (UpdateArray* array : written) outputs.push_back(array->View());
    CallKernel({op, kernel, inputs, outputs, attributes()}, limits);
    std::vector<std::vector<std::byte>> results;
    for (UpdateArray* array : written) {
      results.push_back(array->Bytes());
      EXPECT_TRUE(array->OthersIntact()) << op << " wrote numbers of other tensors";
    }
    return results;
  }

  const UpdateOp& op_;
  const UpdateSizes& sizes_;
  const UpdateSetting& setting_;
  std::optional<TestPattern> pattern_;
  TestTensor x_, dy_, rate_, seen_, update_, factor_;
};

void CheckUpdate(const UpdateOp& op, const UpdateSizes& sizes, const UpdateSetting& setting,
                 int seen, float factor) {
  UpdateRun run(op, sizes, setting, seen, factor);
  const auto expected = run.RunTwo();
  const std::vector<KernelLimits> all_limits = {
      {1, size_t{1} << 20}, {2, size_t{1} << 15}, {3, size_t{1} << 20}, {3, 1}};
  for (size_t i = 0; i < all_limits.size(); ++i) {
    EXPECT_TRUE(run.RunOne(all_limits[i], /*in_place=*/i % 2 == 1) == expected)
        << op.name << " of weights " << ToString(sizes.w()) << ", density " << setting.density
        << ", types " << Name(setting.images) << " " << Name(setting.weights) << " "
        << Name(setting.momentum) << ", " << all_limits[i].threads << " threads, "
        << all_limits[i].scratch_bytes_per_thread << " bytes of scratch, seen " << seen
        << ", factor " << factor;
  }
}

TEST(PackedUpdate, HasTheBitsOfBothOps) {
  const EmulatedTiles tiles;
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    SCOPED_TRACE(target);
    for (const UpdateSetting& setting : kUpdateSettings) {
      // Such targets otherwise run the code of the next one.
      if (MultipliesPairs() && setting.images != DType::kBF16) continue;
      for (const UpdateSizes& sizes : kUpdateSizes) {
        for (const UpdateOp& op : kUpdateOps) {
          CheckUpdate(op, sizes, setting, /*seen=*/0, /*factor=*/0.5F);
        }
      }
    }
  }
}

// Later parts of a batch, and updates that are skipped.
TEST(PackedUpdate, HasTheBitsOfBothOpsForOtherParts) {
  for (const UpdateSetting& setting : kUpdateSettings) {
    for (const UpdateOp& op : kUpdateOps) {
      CheckUpdate(op, kUpdateSizes[1], setting, /*seen=*/10, /*factor=*/0.5F);
      CheckUpdate(op, kUpdateSizes[1], setting, /*seen=*/10, /*factor=*/0.0F);
      CheckUpdate(op, kUpdateSizes[1], setting, /*seen=*/0, /*factor=*/0.0F);
    }
  }
}

}  // namespace
}  // namespace thimble
