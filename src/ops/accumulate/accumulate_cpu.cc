#include <cstring>

#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/accumulate/accumulate.h"
#include "thimble/ops/add/add.h"

namespace thimble {

void AccumulateCpu::Run(const KernelCall& call) {
  // sum and x have the positions of add's inputs.
  if (call.In<int32_t>(2)[0] != 0) return AddCpu::Run(call);
  const float* x = call.In<float>(1);
  float* next = call.Out<float>(0);
  ParallelElements(call.pool, static_cast<size_t>(call.out_shape(0).elements()),
                   [&](size_t begin, size_t end) {
                     std::memcpy(next + begin, x + begin, (end - begin) * sizeof(float));
                   });
}

}  // namespace thimble
