#include <algorithm>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/dropout/drop_rows.h"
#include "thimble/ops/dropout/dropout.h"

namespace thimble {

void DropoutCpu::Run(const KernelCall& call) {
  const auto samples = static_cast<size_t>(call.in_shape(0)[0]);
  const auto elements = static_cast<size_t>(ElementsPerSample(call.in_shape(0)));
  const DropoutDraw draw = DrawOf(call);
  const auto epoch = static_cast<uint32_t>(call.In<int32_t>(2)[0]);
  const size_t chunks = (elements + kElementsPerChunk - 1) / kElementsPerChunk;
  call.pool.Run(samples * chunks, [&](size_t task, size_t /*thread*/) {
    alignas(64) float x_copy[kNumbersPerPiece];
    alignas(64) float y_copy[kNumbersPerPiece];
    const size_t row = task / chunks;
    const auto sample = static_cast<uint32_t>(call.In<int32_t>(1)[row]);
    const size_t chunk = task % chunks * kElementsPerChunk;
    const size_t chunk_end = std::min(elements, chunk + kElementsPerChunk);
    for (size_t begin = chunk; begin < chunk_end; begin += kNumbersPerPiece) {
      const size_t count = std::min(kNumbersPerPiece, chunk_end - begin);
      const size_t place = row * elements + begin;
      const float* x = ReadNumbers(ConstNumbersOf(call.inputs[0]) + place, count, x_copy);
      const Numbers out = NumbersOf(call.outputs[0]) + place;
      float* y = RoomForNumbers(out, y_copy);
      DropRows(draw, {.epoch = epoch, .sample = sample, .first_element = begin, .width = count}, x,
               y);
      WriteNumbers(y, count, out);
    }
  });
}

}  // namespace thimble
