#include "thimble/ops/accumulate/accumulate_cuda.h"

#include <algorithm>

#include "thimble/ops/accumulate/accumulate_device.h"

namespace thimble {
namespace {

// A tensor with more elements is handed over in pieces: they are counted in 32 bits.
constexpr int64_t kMaxPieceElements = int64_t{1} << 30;

AccumulateTensor Piece(const KernelCall& call, int64_t begin, int64_t end) {
  AccumulateTensor tensor;
  tensor.sum = call.In<float>(0) + begin;
  tensor.x = call.In<float>(1) + begin;
  tensor.next = call.Out<float>(0) + begin;
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

void Launch(CUstream_st* stream, AccumulateTensors& tensors) {
  LaunchAccumulate(stream, tensors);
  tensors.Clear();
}

}  // namespace

void AccumulateCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

void AccumulateCuda::RunGroup(std::span<const KernelCall> calls) {
  AccumulateTensors tensors;
  for (const KernelCall& call : calls) {
    // One launch looks at one number of samples seen; calls of one plan have the same.
    if (tensors.seen != call.In<int32_t>(2)) Launch(call.stream, tensors);
    tensors.seen = call.In<int32_t>(2);
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMaxPieceElements) {
      if (tensors.full()) Launch(call.stream, tensors);
      tensors.Add(Piece(call, begin, std::min(elements, begin + kMaxPieceElements)));
    }
  }
  Launch(calls.front().stream, tensors);
}

}  // namespace thimble
