// attention: every query takes a mean of the values of its sentence, weighted by how well their
// keys fit. For each head h of C / H channels:
//   p[t, s] = softmax over s < lengths[b] of scale * (q[t] . k[s])
//   y[t] = sum over s of p[t, s] * v[s]
// scale=0 stands for 1 / sqrt(C / H). With rate > 0 dropout is applied to p (weight_dropout.h): the
// probability of query t, head h and source s is element (t * H + h) * 4096 + s of its sample, so
// that draws depend neither on padding nor on how a batch is divided; there may be at most 4096
// sources then.
//
// Padding of k and v, from lengths[b] on, has no effect, and its gradients are zero. If a sentence
// has no sources, y and dq are zero. A length outside [0, S] makes the outputs of its sentence NaN.
//
// Backward rebuilds p from q and k: no (B, H, T, S) array is ever made. No bit of a sentence's
// outputs depends on other sentences or on padding.
#include "thimble/ops/attention/attention.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/attention/reference.h"
#include "thimble/ops/dropout/dropout_rules.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

Result<void> CheckDroppedProbabilities(const OpCall& call) {
  if (call.attributes.Float("rate") == 0) return {};
  const AttentionSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  if (sizes.sources > kMaxDroppedSources) {
    return BadInput(fmt::format("got {} sources, dropout of probabilities takes at most {}",
                                sizes.sources, kMaxDroppedSources));
  }
  constexpr int64_t kMaxQueries = kMaxDropoutElements / kMaxDroppedSources;
  if (sizes.queries * sizes.heads > kMaxQueries) {
    return BadInput(
        fmt::format("got {} queries of {} heads, dropout of probabilities takes at most {} of one",
                    sizes.queries, sizes.heads, kMaxQueries));
  }
  return {};
}

Result<void> CheckAttention(const OpCall& call, size_t samples_input) {
  const Shape& q = call.inputs[0];
  const Shape& k = call.inputs[1];
  THIMBLE_TRY(RequireRank("q", q, 3, "(B, T, C)"));
  THIMBLE_TRY(RequireRank("k", k, 3, "(B, S, C)"));
  THIMBLE_TRY(RequireShape("k", k, Shape{q[0], k[1], q[2]}));
  THIMBLE_TRY(RequireShape("v", call.inputs[2], k));
  THIMBLE_TRY(RequireShape("lengths", call.inputs[3], Shape{q[0]}));
  const int64_t heads = call.attributes.Int("heads");
  THIMBLE_TRY(RequireAtLeast("heads", heads, 1));
  if (q[2] % heads != 0) {
    return BadInput(fmt::format("{} channels cannot be divided among {} heads", q[2], heads));
  }
  THIMBLE_TRY(CheckWeightDropout(call, samples_input, q[0]));
  return CheckDroppedProbabilities(call);
}

Result<std::vector<Shape>> AttentionShapes(const OpCall& call) {
  THIMBLE_TRY(CheckAttention(call, 4));
  return std::vector<Shape>{call.inputs[0]};
}

Result<std::vector<Shape>> AttentionGradShapes(const OpCall& call) {
  THIMBLE_TRY(CheckAttention(call, 5));
  THIMBLE_TRY(RequireShape("dy", call.inputs[4], call.inputs[0]));
  return std::vector<Shape>{call.inputs[0], call.inputs[1], call.inputs[2]};
}

// `products` of queries and sources over all channels, 2 operations each, and for each score its
// exponential (about 15), sums and products.
FlopFunction ScoreFlops(int64_t products, int64_t per_score) {
  return [=](const OpCall& call) {
    const int64_t sources = call.inputs[1][1];
    const int64_t queries = call.inputs[0][0] * call.inputs[0][1];
    return products * 2 * sources * call.inputs[0].elements() +
           per_score * queries * sources * call.attributes.Int("heads");
  };
}

OpDef MakeAttention(std::string name) {
  return OpDef(std::move(name))
      .Input("q")
      .Input("k")
      .Input("v")
      .Input("lengths", DType::kI32)
      .Attribute("heads", int64_t{1})
      .Attribute("scale", 0.0);
}

}  // namespace

OpDef Make_attention() {
  OpDef op = MakeAttention("attention");
  return AddWeightDropout(op)
      .Output("y")
      .ShapeRule(AttentionShapes)
      .Gradient([](GradientBuilder& g) {
        const auto gradients =
            g.Emit("attention_grad",
                   WithDraws(g, {g.In("q"), g.In("k"), g.In("v"), g.In("lengths"), g.GradOf("y")}),
                   g.attributes());
        g.AddTo("q", gradients[0]);
        g.AddTo("k", gradients[1]);
        g.AddTo("v", gradients[2]);
      })
      .OutputMayReuse("y", "q")
      .Flops(ScoreFlops(2, 19))
      .CpuKernel<AttentionCpu>("AttentionCpu")
      .CudaKernel<AttentionCuda>("AttentionCuda")
      .Reference<AttentionReference>();
}

OpDef Make_attention_grad() {
  OpDef op = MakeAttention("attention_grad").Input("dy");
  return AddWeightDropout(op)
      .Output("dq")
      .Output("dk")
      .Output("dv")
      .ShapeRule(AttentionGradShapes)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dq", "q")
      .OutputMayReuse("dq", "dy")
      .OutputMayReuse("dk", "k")
      .OutputMayReuse("dv", "v")
      .Flops(ScoreFlops(5, 24))
      .CpuKernel<AttentionGradCpu>("AttentionGradCpu")
      .CudaKernel<AttentionGradCuda>("AttentionGradCuda")
      .Reference<AttentionGradReference>();
}

}  // namespace thimble
