#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/packed.cuh"
#include "thimble/ops/conv2d_update/cuda/update_blocks.h"
#include "thimble/ops/sgd_update/sgd_step.cuh"

namespace thimble {
namespace {

// Numbers that a block of threads works on at once: whole blocks of q8.
constexpr int kNumbersAtOnce = 4 * kUpdateThreads;
static_assert(kNumbersAtOnce % kQ8BlockNumbers == 0);

// How many numbers of the tensor are stored before this element. Requires an element.
__device__ int NumbersBefore(const PackedPlace& packed, int64_t element) {
  if (!packed.is_packed()) return static_cast<int>(element);
  return static_cast<int>(FindGroup<1>(packed, element).place - packed.starts[0]);
}

__device__ SgdTensor ArraysOf(const BlocksToUpdate& blocks) {
  if (!blocks.packed.is_packed()) return blocks.use.tensor;
  const PackedSgdTensor packed{blocks.use.tensor, blocks.packed.starts,
                               static_cast<int>(blocks.packed.blocks),
                               static_cast<int>(blocks.packed.tensor)};
  return StoredArrays(blocks.use.settings, packed);
}

__global__ void __launch_bounds__(kUpdateThreads)
    UpdateBlocksKernel(const __grid_constant__ BlocksToUpdate blocks) {
  constexpr auto kBlock = static_cast<int>(kQ8BlockNumbers);
  WaitForKernelsBefore();
  const SgdTensor tensor = ArraysOf(blocks);
  const SgdSettings& settings = blocks.use.settings;
  const SgdNow now = ReadNow(settings);
  const int begin = NumbersBefore(blocks.packed, blocks.first) / kBlock * kBlock;
  const int end = blocks.end == blocks.elements
                      ? tensor.elements
                      : NumbersBefore(blocks.packed, blocks.end) / kBlock * kBlock;
  const int step = static_cast<int>(gridDim.x) * kNumbersAtOnce;
  // All threads of a block take part in each round: some share the scale of a block of q8.
  for (int first = begin + static_cast<int>(blockIdx.x) * kNumbersAtOnce; first < end;
       first += step) {
    const int i = first + 4 * static_cast<int>(threadIdx.x);
    const int count = max(0, min(4, end - i));
    UpdateNumbers<SgdCallers::kBlock>(
        blocks.use.op, settings, now, tensor, {i, i, count, blocks.use.stream}, [&] {
          return LoadFourNumbers<false>(blocks.gradients.type, blocks.gradients.data,
                                        i % blocks.ring, count);
        });
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *blocks.last_word = 0;
}

}  // namespace

void LaunchUpdateBlocks(cudaStream_t stream, const BlocksToUpdate& blocks) {
  const int64_t most = blocks.end - blocks.first + static_cast<int64_t>(kQ8BlockNumbers);
  const int64_t groups = (most + kNumbersAtOnce - 1) / kNumbersAtOnce;
  UpdateBlocksKernel<<<static_cast<unsigned>(groups), kUpdateThreads, 0, stream>>>(blocks);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
