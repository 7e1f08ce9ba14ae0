#include "thimble/model/file/build_model.h"

#include <fmt/format.h>

namespace thimble {
namespace {

// Limits for sums over the network, a thousand times what exists today. Later stages add up sizes
// and operations of all nodes, including backward and update, without overflow checks.
constexpr double kMaxParameters = 1e12;
constexpr double kMaxActivations = 1e13;
constexpr double kMaxOperations = 1e17;

class ModelBuilder {
 public:
  ModelBuilder(NetworkBuilder& net, ValueId images, const std::string& path)
      : net_(net), images_(images), path_(path) {}

  ValueId Build(const std::vector<ModelLayer>& layers, int64_t classes) {
    for (const ModelLayer& layer : layers) {
      net_.set_place(PlaceOf(layer));
      outputs_.push_back(BuildLayer(layer));
      if (net_.failed()) return {};
    }
    const Shape expected{net_.shape(images_)[0], classes};
    if (net_.shape(outputs_.back()) != expected) {
      net_.Fail(BadInput(fmt::format("the last layer outputs scores of shape {}, expected {}",
                                     ToString(net_.shape(outputs_.back())), ToString(expected))));
    }
    net_.set_place("");
    return outputs_.back();
  }

 private:
  std::string PlaceOf(const ModelLayer& layer) const {
    std::string place = ToString(path_, layer.place);
    if (layer.used_at_line == 0) return place;
    return fmt::format("{} (block used in line {})", place, layer.used_at_line);
  }

  ValueId OutputOf(int index) const {
    return index == kImages ? images_ : outputs_[static_cast<size_t>(index)];
  }

  ValueId BuildLayer(const ModelLayer& layer) {
    const ValueId x = OutputOf(layer.input);
    const LayerSize size = layer.type->size(net_.shape(x), layer.numbers);
    Count("parameters", size.parameters, kMaxParameters, parameters_);
    // Checked before the layer is built: the elements of an enormous weight could not be counted.
    if (net_.failed()) return {};
    const ValueId y = layer.type->build(
        net_,
        {layer.name, x, layer.type->is_sum ? OutputOf(layer.other) : ValueId(), layer.numbers});
    if (net_.failed()) return {};
    const auto elements = static_cast<double>(net_.shape(y).elements());
    Count("activations", elements, kMaxActivations, activations_);
    Count("operations", elements * size.operations_per_output, kMaxOperations, operations_);
    return y;
  }

  void Count(const char* what, double more, double most, double& sum) {
    sum += more;
    if (sum <= most) return;
    net_.Fail(
        BadInput(fmt::format("the network has {:.1e} {} up to here at batch {}, expected at most "
                             "{:.0e}",
                             sum, what, net_.shape(images_)[0], most)));
  }

  NetworkBuilder& net_;
  const ValueId images_;
  const std::string& path_;
  std::vector<ValueId> outputs_;  // by layer
  double parameters_ = 0;
  double activations_ = 0;
  double operations_ = 0;
};

}  // namespace

ValueId BuildModel(NetworkBuilder& net, ValueId images, const std::vector<ModelLayer>& layers,
                   int64_t classes, const std::string& path) {
  return ModelBuilder(net, images, path).Build(layers, classes);
}

}  // namespace thimble
