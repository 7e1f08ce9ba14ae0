// token_cross_entropy: the loss of a model that predicts words, fused with its output projection:
// the logits x * w transposed, tokens times vocabulary, never exist as a whole. x (B, T, C), w (V,
// C).
//   loss      sum over the tokens of (1 - smoothing) * nll + smoothing / V * sum of -log p over all
//             words (label smoothing as in fairseq)
//   nll       sum over the tokens of -log p of the target, for the perplexity
//   correct   tokens whose first largest logit is the target's
//   log_sums  log of the sum of exp(logit) of each token (B, T), read by the gradient
// Targets that are the word `padding` (-1: no word) do not count. A target out of range makes loss
// and nll NaN. Nothing is divided by the number of tokens: that is a factor of dloss. Only loss has
// a gradient.
#include "thimble/ops/token_cross_entropy/token_cross_entropy.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"
#include "thimble/ops/token_cross_entropy/reference.h"

namespace thimble {
namespace {

Result<void> CheckTokens(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& w = call.inputs[1];
  THIMBLE_TRY(RequireRank("x", x, 3, "(B, T, C)"));
  THIMBLE_TRY(RequireProjection(x, w));
  THIMBLE_TRY(RequireShape("targets", call.inputs[2], Shape{x[0], x[1]}));
  const double smoothing = call.attributes.Float("smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) {
    return BadInput(fmt::format("smoothing is {}, expected at least 0 and below 1", smoothing));
  }
  const int64_t padding = call.attributes.Int("padding");
  if (padding < -1 || padding >= w[0]) {
    return BadInput(fmt::format("padding is {}, expected a word below {} or -1", padding, w[0]));
  }
  return {};
}

Result<std::vector<Shape>> TokenCrossEntropyShapes(const OpCall& call) {
  THIMBLE_TRY(CheckTokens(call));
  return std::vector<Shape>{Shape{1}, Shape{1}, Shape{1}, call.inputs[2]};
}

Result<std::vector<Shape>> TokenCrossEntropyGradShapes(const OpCall& call) {
  THIMBLE_TRY(CheckTokens(call));
  THIMBLE_TRY(RequireShape("log_sums", call.inputs[3], call.inputs[2]));
  THIMBLE_TRY(RequireShape("dloss", call.inputs[4], Shape{1}));
  return std::vector<Shape>{call.inputs[0], call.inputs[1]};
}

void TokenCrossEntropyGradient(GradientBuilder& g) {
  const auto gradients =
      g.Emit("token_cross_entropy_grad",
             {g.In("x"), g.In("w"), g.In("targets"), g.Out("log_sums"), g.GradOf("loss")},
             {{"padding", g.attributes().Int("padding")},
              {"smoothing", g.attributes().Float("smoothing")}});
  g.AddTo("x", gradients[0]);
  g.AddTo("w", gradients[1]);
}

// Of `products` matrix products and the exponentials (about 15), with a few passes.
int64_t TokenFlops(const OpCall& call, int64_t products) {
  const int64_t logits = call.inputs[2].elements() * call.inputs[1][0];
  return logits * (2 * products * call.inputs[1][1] + 20);
}

}  // namespace

OpDef Make_token_cross_entropy() {
  return OpDef("token_cross_entropy")
      .Input("x")
      .Input("w")
      .Input("targets", DType::kI32)
      .Output("loss", DType::kF32)
      .Output("nll", DType::kF32)
      .Output("correct", DType::kI32)
      .Output("log_sums", DType::kF32)
      .Attribute("padding", int64_t{-1})
      .Attribute("smoothing", 0.1)
      .ShapeRule(&TokenCrossEntropyShapes)
      .Gradient(&TokenCrossEntropyGradient)
      .Flops([](const OpCall& call) { return TokenFlops(call, 1); })
      .CpuKernel<TokenCrossEntropyCpu>("TokenCrossEntropyCpu")
      .CudaKernel<TokenCrossEntropyShortCuda>("TokenCrossEntropyShortCuda")
      .CudaKernel<TokenCrossEntropyFp32Cuda>("TokenCrossEntropyFp32Cuda")
      .CudaKernel<TokenCrossEntropyTf32Cuda>("TokenCrossEntropyTf32Cuda")
      .Reference<TokenCrossEntropyReference>();
}

OpDef Make_token_cross_entropy_grad() {
  return OpDef("token_cross_entropy_grad")
      .Input("x")
      .Input("w")
      .Input("targets", DType::kI32)
      .Input("log_sums", DType::kF32)
      .Input("dloss", DType::kF32)
      .Output("dx")
      .Output("dw")
      .Attribute("padding", int64_t{-1})
      .Attribute("smoothing", 0.1)
      .ShapeRule(&TokenCrossEntropyGradShapes)
      .NoGradient("second derivatives are not supported")
      // The logits again, dx and dw.
      .Flops([](const OpCall& call) { return TokenFlops(call, 3); })
      .CpuKernel<TokenCrossEntropyGradCpu>("TokenCrossEntropyGradCpu")
      .CudaKernel<TokenCrossEntropyGradShortCuda>("TokenCrossEntropyGradShortCuda")
      .CudaKernel<TokenCrossEntropyGradFp32Cuda>("TokenCrossEntropyGradFp32Cuda")
      .CudaKernel<TokenCrossEntropyGradTf32Cuda>("TokenCrossEntropyGradTf32Cuda")
      .Reference<TokenCrossEntropyGradReference>();
}

}  // namespace thimble
