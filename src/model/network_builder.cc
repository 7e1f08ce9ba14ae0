#include "thimble/model/network_builder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace thimble {
namespace {

// The defaults of all common frameworks; exchanging checkpoints relies on them.
constexpr double kBatchNormEpsilon = 1e-5;
constexpr double kBatchNormMomentum = 0.1;
constexpr double kGroupNormEpsilon = 1e-5;

const Shape& NoShape() {
  static const Shape shape;
  return shape;
}

}  // namespace

const Shape& NetworkBuilder::shape(ValueId value) const {
  return value.valid() ? graph_.value(value).shape : NoShape();
}

void NetworkBuilder::Fail(Error error) {
  if (failed()) return;
  failure_ = place_.empty() ? std::move(error) : WithContext(place_, std::move(error));
}

std::vector<ValueId> NetworkBuilder::Append(NodeSpec spec) {
  const size_t num_outputs = ops_.Get(spec.op).outputs().size();
  if (failed()) return std::vector<ValueId>(num_outputs);
  auto outputs = AppendNode(graph_, ops_, std::move(spec));
  if (outputs.ok()) return std::move(outputs).value();
  Fail(outputs.error());
  return std::vector<ValueId>(num_outputs);
}

ValueId NetworkBuilder::Apply(NodeSpec spec) {
  if (ops_.Find(spec.op) == nullptr) {
    Fail(BadInput(fmt::format("layer '{}': unknown op '{}'", spec.layer, spec.op)));
    return {};
  }
  return Append(std::move(spec)).front();
}

ValueId NetworkBuilder::Input(const std::string& name, Shape shape, DType dtype) {
  if (failed()) return {};
  return graph_.AddValue({graph_.UniqueName(name), shape, dtype, Role::kInput, {}, {}});
}

ValueId NetworkBuilder::FindOrAddInput(const char* name, Shape shape) {
  if (failed()) return {};
  const ValueId found = graph_.Find(name);
  return found.valid() ? found : Input(name, shape, DType::kI32);
}

ValueId NetworkBuilder::Samples(int64_t batch) { return FindOrAddInput(kSamplesInput, {batch}); }

ValueId NetworkBuilder::Epoch() { return FindOrAddInput(kEpochInput, {1}); }

Attributes NetworkBuilder::Draws(double rate) {
  return {{"rate", rate}, {"seed", static_cast<int64_t>(seed_)}, {"stream", num_dropouts_++}};
}

std::string NetworkBuilder::LayerOf(ValueId value) const {
  const NodeId producer = graph_.value(value).producer;
  return producer.valid() ? graph_.node(producer).layer : "";
}

ValueId NetworkBuilder::Persistent(const std::string& name, Shape shape, Role role,
                                   InitRule::Kind kind, double scale) {
  if (failed()) return {};
  if (graph_.Find(name).valid()) {
    Fail(BadInput(fmt::format("two layers define '{}'", name)));
    return {};
  }
  inits_.push_back({name, kind, scale});
  return graph_.AddValue({name, shape, DType::kF32, role, {}, {}});
}

ValueId NetworkBuilder::Parameter(const std::string& name, Shape shape, InitRule::Kind kind,
                                  double scale) {
  return Persistent(name, shape, Role::kParameter, kind, scale);
}

ValueId NetworkBuilder::Cache(const std::string& name, Shape shape) {
  if (failed()) return {};
  return graph_.AddValue({name, shape, DType::kF32, Role::kCache, {}, {}});
}

std::vector<ValueId> NetworkBuilder::ApplyCarrying(NodeSpec spec,
                                                   const std::vector<ValueId>& carried) {
  const size_t num_outputs = ops_.Get(spec.op).outputs().size();
  if (!failed()) {
    auto appended = AppendCarryingNode(graph_, ops_, std::move(spec), carried);
    if (appended.ok()) return graph_.nodes.back().outputs;
    Fail(appended.error());
  }
  return std::vector<ValueId>(num_outputs);
}

bool NetworkBuilder::HasRank4(std::string_view layer, ValueId x) {
  if (failed()) return false;
  if (shape(x).rank() == 4) return true;
  Fail(BadInput(fmt::format("layer '{}': expected an input (B, H, W, C), got {}", layer,
                            ToString(shape(x)))));
  return false;
}

ValueId NetworkBuilder::NormalizeImages(ValueId images, std::vector<double> mean,
                                        std::vector<double> std) {
  return Apply({.op = "image_normalize",
                .inputs = {images},
                .attributes = {{"mean", std::move(mean)}, {"std", std::move(std)}},
                .layer = "normalize"});
}

ValueId NetworkBuilder::Conv(const std::string& name, ValueId x, const ConvSpec& spec) {
  if (!HasRank4(name, x)) return {};
  if (spec.out_channels < 1 || spec.kernel < 1) {
    Fail(
        BadInput(fmt::format("layer '{}': {} output channels and kernel {} given, both must be at "
                             "least 1",
                             name, spec.out_channels, spec.kernel)));
    return {};
  }
  // Doubles: the shape rule rejects a huge kernel later, and integers could overflow here.
  const auto kernel = static_cast<double>(spec.kernel);
  const double fan_out = kernel * kernel * static_cast<double>(spec.out_channels);
  const ValueId weight =
      Parameter(name + ".weight", {spec.out_channels, spec.kernel, spec.kernel, shape(x)[3]},
                InitRule::Kind::kNormal, std::sqrt(2.0 / fan_out));
  return Apply({.op = "conv2d",
                .inputs = {x, weight},
                .attributes = {{"stride", spec.stride}, {"padding", spec.padding}},
                .layer = name});
}

ValueId NetworkBuilder::BatchNorm(const std::string& name, ValueId x) {
  if (failed()) return {};
  const size_t rank = shape(x).rank();
  if (rank < 2) {
    Fail(BadInput(fmt::format("layer '{}': batch norm requires at least 2 dimensions, got {}", name,
                              ToString(shape(x)))));
    return {};
  }
  const int64_t channels = shape(x)[rank - 1];
  using Kind = InitRule::Kind;
  const ValueId gamma = Parameter(name + ".weight", {channels}, Kind::kConstant, 1);
  const ValueId beta = Parameter(name + ".bias", {channels}, Kind::kConstant, 0);
  const ValueId mean =
      Persistent(name + ".running_mean", {channels}, Role::kStatistic, Kind::kConstant, 0);
  const ValueId variance =
      Persistent(name + ".running_var", {channels}, Role::kStatistic, Kind::kConstant, 1);
  if (failed()) return {};
  if (mode_ == Mode::kEvaluate) {
    return Apply({.op = "batch_norm_eval",
                  .inputs = {x, gamma, beta, mean, variance},
                  .attributes = {{"epsilon", kBatchNormEpsilon}},
                  .layer = name});
  }
  const auto outputs = Append({.op = "batch_norm",
                               .inputs = {x, gamma, beta},
                               .attributes = {{"epsilon", kBatchNormEpsilon}},
                               .layer = name});
  if (failed()) return {};
  const int64_t count = channels == 0 ? 0 : shape(x).elements() / channels;
  auto updated = AppendUpdateNode(
      graph_, ops_,
      {.op = "batch_norm_update",
       .inputs = {mean, variance, outputs[1], outputs[2]},
       .attributes = {{"momentum", kBatchNormMomentum}, {"count", count}, {"samples", shape(x)[0]}},
       .layer = name},
      {mean, variance});
  if (!updated.ok()) Fail(updated.error());
  return outputs[0];
}

ValueId NetworkBuilder::GroupNorm(const std::string& name, ValueId x, int64_t groups) {
  if (failed()) return {};
  const size_t rank = shape(x).rank();
  if (rank < 2) {
    Fail(BadInput(fmt::format("layer '{}': group norm requires at least 2 dimensions, got {}", name,
                              ToString(shape(x)))));
    return {};
  }
  const int64_t channels = shape(x)[rank - 1];
  using Kind = InitRule::Kind;
  const ValueId gamma = Parameter(name + ".weight", {channels}, Kind::kConstant, 1);
  const ValueId beta = Parameter(name + ".bias", {channels}, Kind::kConstant, 0);
  return Apply({.op = "group_norm",
                .inputs = {x, gamma, beta},
                .attributes = {{"groups", groups}, {"epsilon", kGroupNormEpsilon}},
                .layer = name});
}

ValueId NetworkBuilder::Dropout(ValueId x, double rate) {
  if (failed() || mode_ == Mode::kEvaluate) return x;
  if (shape(x).rank() < 1) {
    Fail(BadInput("dropout requires a batch dimension, got a scalar"));
    return {};
  }
  const std::string layer = LayerOf(x);
  return Apply({.op = "dropout",
                .inputs = {x, Samples(shape(x)[0]), Epoch()},
                .attributes = Draws(rate),
                .layer = layer,
                .output_names = {layer + ".dropout"}});
}

ValueId NetworkBuilder::Relu(ValueId x) {
  if (failed()) return {};
  const std::string layer = LayerOf(x);
  return Apply({.op = "relu", .inputs = {x}, .layer = layer, .output_names = {layer + ".relu"}});
}

ValueId NetworkBuilder::Add(ValueId a, ValueId b) {
  if (failed()) return {};
  const std::string layer = LayerOf(a);
  return Apply({.op = "add", .inputs = {a, b}, .layer = layer, .output_names = {layer + ".sum"}});
}

ValueId NetworkBuilder::AveragePool(ValueId x, int64_t kernel, int64_t stride) {
  if (!HasRank4("pool", x)) return {};
  return Apply({.op = "avg_pool2d",
                .inputs = {x},
                .attributes = {{"kernel", kernel}, {"stride", stride}},
                .layer = "pool"});
}

ValueId NetworkBuilder::GlobalAveragePool(ValueId x) {
  if (!HasRank4("pool", x)) return {};
  if (shape(x)[1] != shape(x)[2]) {
    Fail(BadInput(fmt::format("global average pool: {} is not square", ToString(shape(x)))));
    return {};
  }
  return AveragePool(x, shape(x)[1], 1);
}

ValueId NetworkBuilder::Linear(const std::string& name, ValueId x, int64_t out_features) {
  if (failed()) return {};
  if (shape(x).rank() < 2 || out_features < 1) {
    Fail(BadInput(fmt::format("layer '{}': linear cannot map {} to {} features", name,
                              ToString(shape(x)), out_features)));
    return {};
  }
  int64_t in_features = 1;
  for (size_t axis = 1; axis < shape(x).rank(); ++axis) in_features *= shape(x)[axis];
  const ValueId weight =
      Parameter(name + ".weight", {out_features, in_features}, InitRule::Kind::kUniform,
                1.0 / std::sqrt(static_cast<double>(in_features)));
  const ValueId bias = Parameter(name + ".bias", {out_features}, InitRule::Kind::kConstant, 0);
  if (failed()) return {};
  return Apply({.op = "linear", .inputs = {x, weight, bias}, .layer = name});
}

ValueId NetworkBuilder::SoftmaxCrossEntropy(ValueId logits, ValueId labels) {
  if (failed()) return {};
  const double batch = static_cast<double>(shape(logits).rank() > 0 ? shape(logits)[0] : 0);
  return ApplyWithResults({.op = "softmax_cross_entropy",
                           .inputs = {logits, labels},
                           .attributes = {{"divisor", batch}},
                           .layer = "loss",
                           .output_names = {kLossOutput, kCorrectOutput}},
                          2)[0];
}

std::vector<ValueId> NetworkBuilder::ApplyWithResults(NodeSpec spec, size_t num_results) {
  std::vector<ValueId> outputs = Append(std::move(spec));
  if (!failed()) {
    graph_.outputs.insert(graph_.outputs.end(), outputs.begin(),
                          outputs.begin() + static_cast<int64_t>(num_results));
  }
  return outputs;
}

Result<NetworkBuilder::Built> NetworkBuilder::Finish() && {
  if (failure_) return *failure_;
  return Built{std::move(graph_), std::move(inits_)};
}

}  // namespace thimble
