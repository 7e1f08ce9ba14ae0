// The GPU code of sgd_update and sgd_update_plain.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/ops/sgd_update/sgd_tensors.h"

namespace thimble {

void LaunchSgdUpdate(cudaStream_t stream, const SgdTensors& tensors);
void LaunchSgdUpdatePlain(cudaStream_t stream, const SgdTensors& tensors);

}  // namespace thimble
