// What the gradients of batch norm and group norm read and write on a GPU.
#pragma once

#include <array>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/graph/kernel.h"

namespace thimble {

template <class Storage>
struct GradientTensors {
  InNumbers<Storage> x;
  InNumbers<Storage> dy;
  InNumbers<Storage> other;  // null, or added to dx
  OutNumbers<Storage> dx;
};

struct GradientSums {
  double* partials;  // scratch
  float* dgamma;
  float* dbeta;
};

// Of a call with the inputs x, gamma, beta, mean, variance, dy.
inline GradientTensors<AnyNumber> GradientTensorsOf(const KernelCall& call,
                                                    ConstNumbers other = {}) {
  return {ConstNumbersOf(call.inputs[0]), ConstNumbersOf(call.inputs[5]), other,
          NumbersOf(call.outputs[0])};
}
inline GradientSums GradientSumsOf(const KernelCall& call) {
  return {reinterpret_cast<double*>(call.scratch.data()), call.Out<float>(1), call.Out<float>(2)};
}

inline std::array<DType, 4> TypesOf(const GradientTensors<AnyNumber>& tensors) {
  const DType dx = tensors.dx.type;
  return {tensors.x.type, tensors.dy.type, tensors.other.data == nullptr ? dx : tensors.other.type,
          dx};
}

template <class Storage>
GradientTensors<Storage> As(const GradientTensors<AnyNumber>& tensors) {
  return {As<Storage>(tensors.x), As<Storage>(tensors.dy), As<Storage>(tensors.other),
          As<Storage>(tensors.dx)};
}

}  // namespace thimble
