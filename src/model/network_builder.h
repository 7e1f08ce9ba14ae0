// NetworkBuilder: describes a network layer by layer; the result is a Graph.
//
//   ValueId Tiny(NetworkBuilder& net, ValueId images) {
//     ValueId x = net.Conv("conv", images, {.out_channels = 16, .kernel = 3, .padding = 1});
//     x = net.Relu(net.BatchNorm("bn", x));
//     return net.Linear("fc", net.GlobalAveragePool(x), 10);
//   }
//
// The built-in networks use nothing else. Errors stick: after the first one every call returns at
// once, and Finish reports it with the layer's name. Activations are (B, H, W, C).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/append_node.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Training uses the statistics of the batch, evaluation the running averages.
enum class Mode { kTrain, kEvaluate };

// How a parameter or statistic starts.
struct InitRule {
  enum class Kind { kConstant, kNormal, kUniform };
  std::string name;
  Kind kind = Kind::kConstant;
  double scale = 0;  // the constant, the standard deviation, or the bound of (-scale, scale)
};

struct ConvSpec {
  int64_t out_channels = 0;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
};

class NetworkBuilder {
 public:
  NetworkBuilder(const OpRegistry& ops, Mode mode) : ops_(ops), mode_(mode) {}

  Mode mode() const { return mode_; }
  const Shape& shape(ValueId value) const;

  // Written by the caller before each step.
  ValueId Input(const std::string& name, Shape shape, DType dtype);
  // What random draws depend on, kSamplesInput and kEpochInput: made when first asked for.
  ValueId Samples(int64_t batch);
  ValueId Epoch();
  // Bytes 0..255 to numbers: (x - mean[c]) / std[c].
  ValueId NormalizeImages(ValueId images, std::vector<double> mean, std::vector<double> std);

  // Parameters are named "<name>.weight", "<name>.bias"; statistics "<name>.running_mean" and
  // "<name>.running_var", as PyTorch names them.
  ValueId Conv(const std::string& name, ValueId x, const ConvSpec& spec);  // He normal, fan-out
  ValueId BatchNorm(const std::string& name, ValueId x);
  // Each sample by itself, its channels in `groups` equal groups; no statistics are kept.
  ValueId GroupNorm(const std::string& name, ValueId x, int64_t groups);
  ValueId Relu(ValueId x);
  // Each element becomes zero with probability `rate`, 0 <= rate < 1, anew for each sample and
  // epoch; x itself in evaluation. Further ones draw for themselves.
  ValueId Dropout(ValueId x, double rate);
  ValueId Add(ValueId a, ValueId b);
  ValueId AveragePool(ValueId x, int64_t kernel, int64_t stride);
  ValueId GlobalAveragePool(ValueId x);  // (B, H, W, C) with H = W
  ValueId Linear(const std::string& name, ValueId x, int64_t out_features);

  // Mean cross-entropy over the batch and number of right answers; both are outputs of the graph,
  // by the names kLossOutput and kCorrectOutput.
  ValueId SoftmaxCrossEntropy(ValueId logits, ValueId labels);

  // Any op of the registry, for what has no method here. Returns its first output.
  ValueId Apply(NodeSpec spec);
  // A parameter of one's own.
  ValueId Parameter(const std::string& name, Shape shape, InitRule::Kind kind, double scale);

  // Of what is drawn from here on.
  void set_seed(uint64_t seed) { seed_ = seed; }
  uint64_t seed() const { return seed_; }

  // Put before the message of errors from here on: where in a file the next layer is written.
  void set_place(std::string place) { place_ = std::move(place); }
  void Fail(Error error);
  bool failed() const { return failure_.has_value(); }

  struct Built {
    Graph graph;
    std::vector<InitRule> inits;  // one for every parameter and statistic
  };
  Result<Built> Finish() &&;

 private:
  std::vector<ValueId> Append(NodeSpec spec);
  ValueId Persistent(const std::string& name, Shape shape, Role role, InitRule::Kind kind,
                     double scale);
  bool HasRank4(std::string_view layer, ValueId x);
  ValueId FindOrAddInput(const char* name, Shape shape);
  std::string LayerOf(ValueId value) const;

  const OpRegistry& ops_;
  Mode mode_;
  Graph graph_;
  std::vector<InitRule> inits_;
  uint64_t seed_ = 0;
  int64_t num_dropouts_ = 0;
  std::string place_;
  std::optional<Error> failure_;
};

inline constexpr const char* kImagesInput = "images";     // u8 (B, H, W, C)
inline constexpr const char* kLabelsInput = "labels";     // i32 (B)
inline constexpr const char* kSamplesInput = "samples";   // i32 (B), indices in the data set
inline constexpr const char* kEpochInput = "epoch";       // i32 [1]
inline constexpr const char* kLossOutput = "loss";        // f32 [1]
inline constexpr const char* kCorrectOutput = "correct";  // i32 [1]

}  // namespace thimble
