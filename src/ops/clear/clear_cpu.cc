#include <cstring>

#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/clear/clear.h"

namespace thimble {

// Zero has no bits set in any storage type.
void ClearCpu::Run(const KernelCall& call) {
  const auto bytes = call.outputs[0].bytes();
  ParallelElements(call.pool, bytes.size(), [&](size_t begin, size_t end) {
    std::memset(bytes.data() + begin, 0, end - begin);
  });
}

}  // namespace thimble
