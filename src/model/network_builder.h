// NetworkBuilder: describes a network layer by layer; the result is a Graph.
//
//   ValueId Tiny(NetworkBuilder& net, ValueId images) {
//     ValueId x = net.Conv("conv", images, {.out_channels = 16, .kernel = 3, .padding = 1});
//     x = net.Relu(net.BatchNorm("bn", x));
//     return net.Linear("fc", net.GlobalAveragePool(x), 10);
//   }
//
// The built-in networks use nothing else. Errors are sticky: after the first, every call returns
// immediately, and Finish reports it with the layer's name. Activations are (B, H, W, C).
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

// The initial value of a parameter or statistic.
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
  // The inputs that random numbers depend on, kSamplesInput and kEpochInput; created on first use.
  ValueId Samples(int64_t batch);
  ValueId Epoch();
  // The attributes of a layer that draws random numbers, different for each call.
  Attributes Draws(double rate);
  // Bytes 0..255 to floats: (x - mean[c]) / std[c].
  ValueId NormalizeImages(ValueId images, std::vector<double> mean, std::vector<double> std);

  // Parameters are named "<name>.weight", "<name>.bias"; statistics "<name>.running_mean" and
  // "<name>.running_var", as PyTorch names them.
  ValueId Conv(const std::string& name, ValueId x, const ConvSpec& spec);  // He normal, fan-out
  ValueId BatchNorm(const std::string& name, ValueId x);
  // Normalises each sample on its own, its channels in `groups` equal groups; keeps no statistics.
  ValueId GroupNorm(const std::string& name, ValueId x, int64_t groups);
  ValueId Relu(ValueId x);
  // Each element becomes zero with probability `rate`, 0 <= rate < 1, drawn separately for each
  // sample, epoch and dropout layer. Returns x in evaluation.
  ValueId Dropout(ValueId x, double rate);
  ValueId Add(ValueId a, ValueId b);
  ValueId AveragePool(ValueId x, int64_t kernel, int64_t stride);
  ValueId GlobalAveragePool(ValueId x);  // (B, H, W, C) with H = W
  ValueId Linear(const std::string& name, ValueId x, int64_t out_features);

  // Mean cross-entropy over the batch and number of correct answers; both become outputs of the
  // graph, named kLossOutput and kCorrectOutput.
  ValueId SoftmaxCrossEntropy(ValueId logits, ValueId labels);

  // Appends any op of the registry that has no method here. Returns its first output.
  ValueId Apply(NodeSpec spec);
  // Adds a parameter, for use with Apply.
  ValueId Parameter(const std::string& name, Shape shape, InitRule::Kind kind, double scale);

  // Adds a cache (Role::kCache), for use with ApplyCarrying.
  ValueId Cache(const std::string& name, Shape shape);
  // Appends an op whose output i is the next version of carried[i], unless that is invalid or
  // missing. Returns all outputs.
  std::vector<ValueId> ApplyCarrying(NodeSpec spec, const std::vector<ValueId>& carried);

  // Appends any op; returns all outputs. `num_results` of them, the first ones, become outputs of
  // the graph.
  std::vector<ValueId> ApplyWithResults(NodeSpec spec, size_t num_results);

  // Sets the seed for random layers added after this call.
  void set_seed(uint64_t seed) { seed_ = seed; }
  uint64_t seed() const { return seed_; }

  // Sets a prefix for error messages from now on: the place of the next layer in its file.
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
