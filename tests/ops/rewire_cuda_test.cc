// rewire on a GPU: compared with the CPU's kernel, byte by byte, on tensors of a real network.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/cuda_copies.h"
#include "tests/support/op_inputs.h"
#include "thimble/ops/rewire/rewire_rule.h"
#include "thimble/tensor/pattern.h"

namespace thimble {
namespace {

// The 24 convolutions of wrn-28-2 that are sparse.
std::vector<int64_t> LayersOfWrn28() {
  std::vector<int64_t> elements;
  for (const int64_t channels : {32, 64, 128}) {
    elements.push_back(9 * channels * channels / 2);
    elements.insert(elements.end(), 7, 9 * channels * channels);
  }
  return elements;
}

struct CudaRewireCase {
  std::vector<int64_t> elements;
  double sparsity = 0.8;
  int64_t method = kRewireDsr;
  float threshold = 0.1F;
  DType weights = DType::kF32;
  DType momentum = DType::kF32;
  bool has_momentum = true;

  Attributes attributes() const {
    return {{"tensors", elements},
            {"method", method},
            {"quota", int64_t{20000}},
            {"fraction", 0.3},
            {"seed", int64_t{11}}};
  }
  std::string Text() const {
    return std::to_string(elements.size()) + " tensors, sparsity " + std::to_string(sparsity) +
           ", method " + std::to_string(method) + ", threshold " + std::to_string(threshold) +
           ", weights in " + std::string(Name(weights)) + ", momentum " +
           (has_momentum ? "in " + std::string(Name(momentum)) : "none");
  }
};

// Normal numbers, `scale_of(i)` times as large.
template <class ScaleOf>
std::vector<float> ScaledNormals(uint32_t stream, int64_t count, const ScaleOf& scale_of) {
  std::vector<float> numbers;
  const auto normals = RandomNormals(/*seed=*/9, stream, static_cast<size_t>(count));
  for (size_t i = 0; i < normals.size(); ++i) {
    numbers.push_back(static_cast<float>(normals[i] * scale_of(i)));
  }
  return numbers;
}

// Inputs and outputs of one call, which may share memory.
class CudaRewireRun {
 public:
  explicit CudaRewireRun(const CudaRewireCase& c) : case_(c) {
    const Shape pattern_shape{PatternWords(PatternBlocks(c.elements))};
    TestTensor& pattern = inputs_.emplace_back(pattern_shape, DType::kI32);
    DrawPattern(pattern.View().As<int32_t>(), c.elements, c.sparsity, /*seed=*/3);
    const int64_t active = pattern.View().As<int32_t>().back();
    // Layers differ, so that their shares are not in proportion to their room.
    const auto scale = [](size_t i) { return 0.25 * static_cast<double>(1 + i / 16384 % 4); };
    inputs_.emplace_back(Shape{active}, c.weights, ScaledNormals(1, active, scale));
    if (c.has_momentum) {
      const auto tensors = static_cast<int64_t>(c.elements.size());
      const int64_t count = PoolNumbers(c.momentum, active, tensors);
      inputs_.emplace_back(Shape{count}, c.momentum, ScaledNormals(2, count, scale));
    }
    inputs_.emplace_back(Shape{1}, DType::kF32, std::vector<float>{c.threshold});
    for (TestTensor& input : inputs_) outputs_.emplace_back(input.View().shape, input.View().dtype);
    inputs_.push_back(TestTensor::Integer(6));
    outputs_.emplace_back(Shape{1}, DType::kI32);
  }

  // Returns the bytes of all outputs, with guards.
  std::vector<std::vector<std::byte>> Run(bool cuda, bool in_place) {
    CudaCopies copies;
    const auto view = [&](TestTensor& tensor) {
      return cuda ? copies.View(tensor) : tensor.View();
    };
    const std::string name = case_.has_momentum ? "Rewire" : "RewirePlain";
    const std::string kernel = name + (cuda ? "Cuda" : "Cpu");
    KernelCallSpec spec{
        case_.has_momentum ? "rewire" : "rewire_plain", kernel, {}, {}, case_.attributes()};
    std::vector<TestTensor*> results;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool is_shared = in_place && i + 1 < inputs_.size();
      results.push_back(is_shared ? &inputs_[i] : &outputs_[i]);
      spec.inputs.push_back(view(inputs_[i]));
      spec.outputs.push_back(view(*results.back()));
    }
    CallKernel(spec, {});
    copies.Return();
    std::vector<std::vector<std::byte>> bytes;
    for (TestTensor* result : results) {
      EXPECT_TRUE(result->GuardsIntact());
      bytes.emplace_back(result->bytes_and_guards().begin(), result->bytes_and_guards().end());
    }
    return bytes;
  }

 private:
  CudaRewireCase case_;
  std::vector<TestTensor> inputs_;
  std::vector<TestTensor> outputs_;
};

void ExpectTheBitsOfTheCpu(const CudaRewireCase& c) {
  const auto expected = CudaRewireRun(c).Run(/*cuda=*/false, /*in_place=*/false);
  for (const bool in_place : {false, true}) {
    const auto actual = CudaRewireRun(c).Run(/*cuda=*/true, in_place);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(actual[i] == expected[i])
          << "output " << i << ", " << c.Text() << (in_place ? ", in place" : "");
    }
  }
}

// The thresholds drop nothing, fewer than the quota, as many, more, and all but the largest of each
// tensor.
TEST(CudaRewire, GivesTheBitsOfTheCpu) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const float threshold : {0.0F, 0.02F, 0.04F, 0.6F, 1e20F}) {
    ExpectTheBitsOfTheCpu({.elements = LayersOfWrn28(), .threshold = threshold});
  }
  ExpectTheBitsOfTheCpu(
      {.elements = LayersOfWrn28(), .weights = DType::kBF16, .momentum = DType::kQ8});
  for (const double sparsity : {0.8, 0.1}) {
    ExpectTheBitsOfTheCpu(
        {.elements = LayersOfWrn28(), .sparsity = sparsity, .method = kRewireSet});
  }
}

// Layers become full, so that their shares go to others; or there is no room for all.
TEST(CudaRewire, GivesTheBitsOfTheCpuIfThereIsLittleRoom) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const double sparsity : {0.5, 0.05}) {
    for (const float threshold : {0.6F, 1e20F}) {
      ExpectTheBitsOfTheCpu({.elements = LayersOfWrn28(),
                             .sparsity = sparsity,
                             .threshold = threshold,
                             .momentum = DType::kQ8});
    }
  }
}

// In 16 bits many weights have the same magnitude.
TEST(CudaRewire, GivesTheBitsOfTheCpuForAllTypes) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  const std::vector<int64_t> elements = {9000, 1, 40000, 256, 257, 100000};
  for (const int64_t method : {kRewireDsr, kRewireSet}) {
    for (const DType weights : {DType::kF32, DType::kF16, DType::kBF16}) {
      CudaRewireCase c{.elements = elements,
                       .sparsity = 0.2,
                       .method = method,
                       .threshold = 0.4F,
                       .weights = weights};
      for (const DType momentum : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8}) {
        c.momentum = momentum;
        ExpectTheBitsOfTheCpu(c);
      }
      c.has_momentum = false;
      ExpectTheBitsOfTheCpu(c);
    }
  }
}

// More tensors than one launch lists, and than a block has threads.
TEST(CudaRewire, GivesTheBitsOfTheCpuForManyTensors) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < 1500; ++i) elements.push_back(1 + i * 37 % 600);
  for (const int64_t method : {kRewireDsr, kRewireSet}) {
    ExpectTheBitsOfTheCpu({.elements = elements,
                           .sparsity = 0.1,
                           .method = method,
                           .threshold = 0.5F,
                           .momentum = DType::kQ8});
  }
}

}  // namespace
}  // namespace thimble
