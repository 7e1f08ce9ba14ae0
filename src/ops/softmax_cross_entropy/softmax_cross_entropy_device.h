// The GPU code of softmax_cross_entropy and its gradient.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

struct ClassifiedRows {
  const float* logits;    // (rows, classes)
  const int32_t* labels;  // (rows)
  int64_t rows, classes;
  double divisor;
};

// loss (1) and correct (1) of all rows.
void LaunchSoftmaxCrossEntropy(cudaStream_t stream, const ClassifiedRows& in, float* loss,
                               int32_t* correct);
// dloss (1); dlogits (rows, classes) may be the logits.
void LaunchSoftmaxCrossEntropyGrad(cudaStream_t stream, const ClassifiedRows& in,
                                   const float* dloss, float* dlogits);

}  // namespace thimble
