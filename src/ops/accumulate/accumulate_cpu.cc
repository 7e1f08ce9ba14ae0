#include <cstring>

#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/accumulate/accumulate.h"
#include "thimble/ops/add/add.h"

namespace thimble {

void AccumulateCpu::Run(const KernelCall& call) {
  // sum and x have the positions of add's inputs.
  if (call.In<int32_t>(2)[0] != 0) return AddCpu::Run(call);
  ParallelNumbers(call.pool, call.inputs.subspan(1, 1), call.outputs, [](const NumberPiece& piece) {
    std::memcpy(piece.out[0], piece.in[0], piece.count * sizeof(float));
  });
}

}  // namespace thimble
