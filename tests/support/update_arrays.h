// The ops of conv2d_update and their arrays, for tests that compare them with the two ops that they
// consist of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/cuda_copies.h"
#include "tests/support/packed_pool.h"

namespace thimble {

// One of the arrays of an update: dense, or the second of three tensors in a pool.
class UpdateArray {
 public:
  UpdateArray(const TestPattern* pattern, const Shape& shape, DType dtype) : shape_(shape) {
    if (pattern == nullptr) {
      dense_.emplace(shape, dtype);
    } else {
      pool_.emplace(*pattern, dtype);
    }
  }
  UpdateArray(const TestPattern* pattern, const Shape& shape, DType dtype, uint32_t stream)
      : UpdateArray(pattern, shape, dtype) {
    const std::vector<float> numbers = HashedNumbers(shape.elements(), stream);
    if (pool_) pool_->Store(kTensorInPool, shape, numbers);
    if (dense_) EncodeNumbers(numbers.data(), numbers.size(), NumbersOf(View()));
  }

  TensorView View() { return pool_ ? pool_->View(kTensorInPool, shape_) : dense_->View(); }
  std::vector<std::byte> Bytes() {
    const TensorView stored = StoredNumbers(View());
    return {stored.bytes().begin(), stored.bytes().end()};
  }
  TensorView View(CudaCopies& copies) {
    return pool_ ? copies.View(*pool_, kTensorInPool, shape_) : copies.View(*dense_);
  }
  std::span<std::byte> bytes_and_guards() {
    return pool_ ? pool_->bytes_and_guards() : dense_->bytes_and_guards();
  }
  bool OthersIntact() {
    return pool_ ? pool_->OthersIntact(kTensorInPool, shape_) : dense_->GuardsIntact();
  }

  static constexpr size_t kTensorInPool = 1;

 private:
  Shape shape_;
  std::optional<TestTensor> dense_;
  std::optional<TestPool> pool_;
};

// An op that uses a gradient. The one that also computes it has this name after `conv2d_`, and its
// kernels after `Conv2d`.
struct UpdateOp {
  std::string name, kernel;    // the kernel without its device
  bool has_momentum = false;   // as input, the second array
  bool writes_weight = false;  // or sum
  bool writes_momentum = false;
  bool has_rate = false;   // otherwise `seen`
  bool has_factor = true;  // and the number of the update
};
inline const std::vector<UpdateOp> kUpdateOps = {
    {"accumulate", "Accumulate", false, true, false, false, false},
    {"sgd_gather", "SgdGather", true, false, true, false},
    {"sgd_update", "SgdUpdate", true, true, true, true},
    {"sgd_update_plain", "SgdUpdatePlain", false, true, false, true},
};

}  // namespace thimble
