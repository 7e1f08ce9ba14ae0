// embedding: y (B, T, C) = scale * table[token] + position(t), for tokens (B, T) and a table (V,
// C). The fixed position of fairseq's Transformer (PositionFrequency in embedding.h) is that of
// advance * t + first_position, plus the optional input `offset`, for sentences that come token by
// token. With advance=0 all tokens of a row are alternatives for the same position; with
// positions=0 no position is added. Rows of the token `padding` (-1: there is none) are zero, but
// positions count them: padding belongs at the end of a sentence. A token out of range makes its
// row NaN.
//
// embedding_grad: dtable (V, C), for each token the sum of dy over its places, in their order. The
// row of `padding` gets no gradient, nor does a token out of range.
//
// The gradient is dense, although most rows of a batch's gradient are zero: Adam changes every row
// in every update anyway (its moments and the weight decay act on rows without tokens too), an
// update of the rows that occur would train differently, and an update in backward frees the
// gradient right after it was made.
#include "thimble/ops/embedding/embedding.h"

#include <algorithm>
#include <limits>

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct EmbeddingReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t places = call.in_shape(0).elements();
    const int64_t words = call.in_shape(1)[0];
    const int64_t channels = call.in_shape(1)[1];
    const Attributes& attributes = call.op.attributes;
    for (int64_t place = 0; place < places; ++place) {
      const int32_t token = call.template InAs<int32_t>(0)[place];
      T* y = call.Out(0) + place * channels;
      if (token < 0 || token >= words) {
        std::fill_n(y, channels, T(std::numeric_limits<double>::quiet_NaN()));
      } else if (token == attributes.Int("padding")) {
        std::fill_n(y, channels, T(0));
      } else {
        RunRow(call, place % call.in_shape(0)[1], call.In(1) + token * channels, y);
      }
    }
  }

 private:
  template <class T>
  static void RunRow(const ReferenceCall<T>& call, int64_t t, const T* row, T* y) {
    const Attributes& attributes = call.op.attributes;
    const int64_t channels = call.in_shape(1)[1];
    const int64_t offset = call.op.inputs.size() > 2 ? call.template InAs<int32_t>(2)[0] : 0;
    const auto first = static_cast<double>(attributes.Int("first_position") + offset);
    const double position =
        first + static_cast<double>(attributes.Int("advance")) * static_cast<double>(t);
    for (int64_t c = 0; c < channels; ++c) {
      y[c] = T(attributes.Float("scale")) * row[c];
      if (attributes.Int("positions") == 0) continue;
      const int64_t half = channels / 2;
      const double angle = position * PositionFrequency(c % half, channels);
      y[c] += T(c < half ? std::sin(angle) : std::cos(angle));
    }
  }
};

struct EmbeddingGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.out_shape(0)[1];
    const Attributes& attributes = call.op.attributes;
    std::fill_n(call.Out(0), call.out_shape(0).elements(), T(0));
    for (int64_t place = 0; place < call.in_shape(0).elements(); ++place) {
      const int32_t token = call.template InAs<int32_t>(0)[place];
      if (token < 0 || token >= call.out_shape(0)[0]) continue;
      if (token == attributes.Int("padding")) continue;
      for (int64_t c = 0; c < channels; ++c) {
        call.Out(0)[token * channels + c] +=
            T(attributes.Float("scale")) * call.In(1)[place * channels + c];
      }
    }
  }
};

Result<void> CheckPadding(int64_t padding, int64_t words) {
  if (padding >= -1 && padding < words) return {};
  return BadInput(fmt::format("padding is {}, expected a token below {} or -1", padding, words));
}

Result<std::vector<Shape>> EmbeddingShapes(const OpCall& call) {
  THIMBLE_TRY(RequireRank("tokens", call.inputs[0], 2, "(B, T)"));
  THIMBLE_TRY(RequireRank("table", call.inputs[1], 2, "(V, C)"));
  if (call.inputs.size() > 2) THIMBLE_TRY(RequireShape("offset", call.inputs[2], Shape{1}));
  THIMBLE_TRY(CheckPadding(call.attributes.Int("padding"), call.inputs[1][0]));
  THIMBLE_TRY(RequireAtLeast("advance", call.attributes.Int("advance"), 0));
  const int64_t channels = call.inputs[1][1];
  if (call.attributes.Int("positions") != 0 && channels % 2 != 0) {
    return BadInput(fmt::format("{} channels, expected an even number for positions", channels));
  }
  return std::vector<Shape>{{call.inputs[0][0], call.inputs[0][1], channels}};
}

Result<std::vector<Shape>> EmbeddingGradShapes(const OpCall& call) {
  THIMBLE_TRY(RequireRank("tokens", call.inputs[0], 2, "(B, T)"));
  if (call.inputs[0].elements() > INT32_MAX) {
    return BadInput(fmt::format("{} tokens, expected at most {}", ToString(call.inputs[0]),
                                INT32_MAX));  // kernels number their places
  }
  THIMBLE_TRY(RequireRank("dy", call.inputs[1], 3, "(B, T, C)"));
  const int64_t channels = call.inputs[1][2];
  THIMBLE_TRY(RequireShape("dy", call.inputs[1], {call.inputs[0][0], call.inputs[0][1], channels}));
  const int64_t words = call.attributes.Int("words");
  THIMBLE_TRY(RequireAtLeast("words", words, 0));
  THIMBLE_TRY(CheckPadding(call.attributes.Int("padding"), words));
  return std::vector<Shape>{{words, channels}};
}

}  // namespace

OpDef Make_embedding() {
  return OpDef("embedding")
      .Input("tokens", DType::kI32)
      .Input("table")
      .OptionalInput("offset", DType::kI32)
      .Output("y")
      .Attribute("scale", 1.0)
      .Attribute("positions", int64_t{1})
      .Attribute("first_position", int64_t{0})
      .Attribute("advance", int64_t{1})
      .Attribute("padding", int64_t{-1})
      .ShapeRule(EmbeddingShapes)
      .Gradient([](GradientBuilder& g) {
        g.AddTo("table", g.Emit("embedding_grad", {g.In("tokens"), g.GradOf("y")},
                                {{"words", g.ShapeOf(g.In("table"))[0]},
                                 {"scale", g.attributes().Float("scale")},
                                 {"padding", g.attributes().Int("padding")}})[0]);
      })
      .CheapToRebuild()
      .Flops(PerOutputElement(2))
      .CpuKernel<EmbeddingCpu>("EmbeddingCpu")
      .CudaKernel<EmbeddingCuda>("EmbeddingCuda")
      .Reference<EmbeddingReference>();
}

OpDef Make_embedding_grad() {
  return OpDef("embedding_grad")
      .Input("tokens", DType::kI32)
      .Input("dy")
      .Output("dtable")
      .Attribute("words", int64_t{0})  // rows of the table
      .Attribute("scale", 1.0)
      .Attribute("padding", int64_t{-1})
      .ShapeRule(EmbeddingGradShapes)
      .NoGradient("second derivatives are not supported")
      .Flops(
          [](const OpCall& call) { return call.inputs[1].elements() + call.outputs[0].elements(); })
      .CpuKernel<EmbeddingGradCpu>("EmbeddingGradCpu")
      .CudaKernel<EmbeddingGradCuda>("EmbeddingGradCuda")
      .Reference<EmbeddingGradReference>();
}

}  // namespace thimble
