// Copies of test tensors in the GPU's memory, with their guards.
#pragma once

#include <map>
#include <span>

#include "tests/support/call_kernel.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/packed_pool.h"

namespace thimble {

// Requires a device. The tensors and pools must outlive it.
class CudaCopies {
 public:
  TensorView View(TestTensor& tensor) {
    TensorView view = tensor.View();
    view.data = Copy(tensor.bytes_and_guards()) + GuardedBuffer::kGuardBytes;
    return view;
  }
  TensorView View(TestPool& pool, size_t tensor, const Shape& shape) {
    const TestPattern& pattern = pool.pattern();
    TensorView view = pool.View(tensor, shape);
    view.data = Copy(pool.bytes_and_guards()) + GuardedBuffer::kGuardBytes;
    auto found = patterns_.find(&pattern);
    if (found == patterns_.end()) {
      found = patterns_.emplace(&pattern, CudaMemory(pattern.bytes())).first;
    }
    view.packed = pattern.PlaceIn(found->second.data(), tensor);
    return view;
  }
  // Copies everything back to the tensors and pools.
  void Return() const {
    for (const auto& [address, copy] : copies_) copy.memory.CopyTo(copy.original);
  }

 private:
  struct OneCopy {
    std::span<std::byte> original;
    CudaMemory memory;
  };
  std::byte* Copy(std::span<std::byte> bytes) {
    auto found = copies_.find(bytes.data());
    if (found == copies_.end()) {
      found = copies_.emplace(bytes.data(), OneCopy{bytes, CudaMemory(bytes)}).first;
    }
    return found->second.memory.data();
  }

  std::map<const std::byte*, OneCopy> copies_;
  std::map<const TestPattern*, CudaMemory> patterns_;
};

}  // namespace thimble
