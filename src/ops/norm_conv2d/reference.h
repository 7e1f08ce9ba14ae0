// Convolutions that read x through a batch norm, as formulas: the norm's, then the convolution's.
#pragma once

#include <cmath>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm/reference.h"
#include "thimble/ops/conv2d/reference.h"
#include "thimble/ops/norm_conv2d/norm_conv2d.h"

namespace thimble {

// The inputs of the convolution's op.
template <class T>
std::vector<T> WithoutNorm(std::span<const T> inputs) {
  std::vector<T> rest = {inputs[0]};
  rest.insert(rest.end(), inputs.begin() + 1 + kNormConstants, inputs.end());
  return rest;
}

template <OpDef (*kMakeConvolution)()>
struct NormConv2dReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::sqrt;
    static const ReferenceSet convolution = kMakeConvolution().reference();
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const int64_t elements = call.in_shape(0).elements();
    const int64_t channels = call.in_shape(1)[0];
    std::vector<T> y(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t c = i % channels;
      const T scale = call.In(1)[c] / sqrt(call.In(4)[c] + epsilon);
      const T normalized = (call.In(0)[i] - call.In(3)[c]) * scale + call.In(2)[c];
      y[static_cast<size_t>(i)] = BehindRelu(call.op.attributes, normalized, normalized);
    }
    const auto shapes = WithoutNorm(call.op.inputs);
    auto inputs = WithoutNorm(call.inputs);
    inputs[0] = y.data();
    Select<T>(convolution)({{shapes, call.op.outputs, call.op.attributes}, inputs, call.outputs});
  }
};

// The gradient of the norm for what the convolutions give it.
template <class T>
void RunNormGradientReference(const ReferenceCall<T>& call, bool pair) {
  const OpCall& op = call.op;
  const Shape& x = call.in_shape(2);
  std::vector<T> between(static_cast<size_t>(x.elements()), T(0));
  const auto sources = NormGradientSources(op.attributes);
  for (size_t i = 0; i < (pair ? 2 : 1); ++i) {
    const NormGradientSource& source = sources[i];
    const Conv2dGeometry g = GradInputGeometry(op.inputs[source.w], op.inputs[source.w + 1],
                                               {x[1], x[2]}, source.stride, source.padding)
                                 .value();
    AddGradInput(g, call.In(source.w), call.In(source.w + 1), between.data());
  }
  const bool adds = !pair && op.inputs.size() > kOtherOfNormGradient;
  const auto last = static_cast<std::ptrdiff_t>(kOtherOfNormGradient + (adds ? 1 : 0));
  std::vector<Shape> shapes(op.inputs.begin() + 2, op.inputs.begin() + last);
  std::vector<const void*> inputs(call.inputs.begin() + 2, call.inputs.begin() + last);
  shapes.insert(shapes.begin() + 5, x);
  inputs.insert(inputs.begin() + 5, between.data());
  const ReferenceCall<T> norm{{shapes, op.outputs, op.attributes}, inputs, call.outputs};
  adds ? BatchNormGradAddReference::Run<T>(norm) : BatchNormGradReference::Run<T>(norm);
}

struct NormConv2dGradInputReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    RunNormGradientReference(call, /*pair=*/false);
  }
};

struct NormConv2dGradInputPairReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    RunNormGradientReference(call, /*pair=*/true);
  }
};

}  // namespace thimble
