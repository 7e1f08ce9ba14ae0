#include "thimble/model/file/expand_model.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace thimble {
namespace {

// Longer names would only bloat files and tables.
constexpr size_t kMaxNameBytes = 200;

// One use of a block, or the network itself.
struct Scope {
  std::string prefix;  // of names: "block1.layer.0."
  std::map<std::string, int64_t> arguments;
  int input = kImages;
  int used_at_line = 0;
};

std::string WithCounter(std::string_view name, int64_t number) {
  const size_t at = name.find("{i}");
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, at), number, name.substr(at + 3));
}

class Expander {
 public:
  explicit Expander(const ModelDescription& model) : model_(model) {}

  Result<std::vector<ModelLayer>> Expand() {
    const Scope outermost{"", {{kClassesParameter, model_.images.classes}}, kImages, 0};
    THIMBLE_TRY(ExpandBlock(model_.body, outermost));
    THIMBLE_TRY(CheckAllUsed());
    return std::move(layers_);
  }

 private:
  // All of these return the index of the layer that produces the output of the block or layer.
  Result<int> ExpandBlock(const BlockDescription& block, const Scope& scope) {
    std::vector<int> outputs;
    for (const LayerDescription& layer : block.layers) {
      const auto output_of = [&](int index) {
        return index == kBlockInput ? scope.input : outputs[static_cast<size_t>(index)];
      };
      THIMBLE_ASSIGN_OR_RETURN(const int output, Repeat(layer, scope, output_of(layer.input_index),
                                                        output_of(layer.with_index)));
      outputs.push_back(output);
    }
    return outputs.back();
  }

  Result<int> Repeat(const LayerDescription& layer, const Scope& scope, int input, int other) {
    THIMBLE_ASSIGN_OR_RETURN(const int64_t repeat, Evaluate(layer.repeat, kRepeatKey, scope));
    THIMBLE_ASSIGN_OR_RETURN(const int64_t first, Evaluate(layer.first, kFirstKey, scope));
    int output = input;
    for (int64_t count = 0; count < repeat; ++count) {
      const std::string name = scope.prefix + WithCounter(layer.name.text, first + count);
      THIMBLE_ASSIGN_OR_RETURN(output, ExpandOnce(layer, scope, name, output, other));
    }
    return output;
  }

  Result<int> ExpandOnce(const LayerDescription& layer, const Scope& scope, const std::string& name,
                         int input, int other) {
    if (name.size() > kMaxNameBytes) {
      return ErrorAt(model_.path, layer.place,
                     fmt::format("the layer's full name is longer than {} bytes", kMaxNameBytes));
    }
    const BlockDescription* block = model_.FindBlock(layer.type);
    if (block == nullptr) return AddLayer(layer, scope, name, input, other);
    Scope inside{layer.name.text.empty() ? scope.prefix : name + ".",
                 {{kClassesParameter, model_.images.classes}},
                 input,
                 scope.used_at_line == 0 ? layer.place.line : scope.used_at_line};
    for (const auto& [parameter, number] : layer.numbers) {
      inside.arguments[parameter] = ValueOf(number, scope);
    }
    return ExpandBlock(*block, inside);
  }

  Result<int> AddLayer(const LayerDescription& layer, const Scope& scope, const std::string& name,
                       int input, int other) {
    const int index = static_cast<int>(layers_.size());
    if (index >= kMaxModelLayers) {
      return ErrorAt(model_.path, layer.place,
                     fmt::format("more than {} layers, counting repetitions", kMaxModelLayers));
    }
    ModelLayer added{FindLayerType(layer.type), "", input, other, {}, layer.place,
                     scope.used_at_line};
    if (added.type->has_parameters) {
      added.name = name;
      if (!names_.insert(name).second) {
        return ErrorAt(model_.path, layer.place, fmt::format("two layers get the name '{}'", name));
      }
    }
    for (const NumberKey& key : added.type->keys) {
      THIMBLE_ASSIGN_OR_RETURN(const int64_t number,
                               Evaluate(layer.numbers.at(std::string(key.name)), key, scope));
      added.numbers.push_back(number);
    }
    layers_.push_back(std::move(added));
    return index;
  }

  static int64_t ValueOf(const PlacedNumber& number, const Scope& scope) {
    return number.parameter.empty() ? number.value : scope.arguments.at(number.parameter);
  }

  // The parser checked the range of plain numbers; the values of parameters are known only here.
  Result<int64_t> Evaluate(const PlacedNumber& number, const NumberKey& key,
                           const Scope& scope) const {
    const int64_t value = ValueOf(number, scope);
    if (value >= key.least && value <= key.most) return value;
    return ErrorAt(model_.path, number.place,
                   fmt::format("'{}': ${} is {}, expected {}{}", key.name, number.parameter, value,
                               RangeOf(key),
                               scope.used_at_line == 0
                                   ? ""
                                   : fmt::format(" (block used in line {})", scope.used_at_line)));
  }

  Result<void> CheckAllUsed() const {
    std::vector<bool> used(layers_.size());
    used.back() = true;
    for (const ModelLayer& layer : layers_) {
      if (layer.input != kImages) used[static_cast<size_t>(layer.input)] = true;
      if (layer.other != kImages) used[static_cast<size_t>(layer.other)] = true;
    }
    for (size_t index = 0; index < layers_.size(); ++index) {
      if (used[index]) continue;
      return ErrorAt(model_.path, layers_[index].place, "the output of this layer is never used");
    }
    return {};
  }

  const ModelDescription& model_;
  std::vector<ModelLayer> layers_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::vector<ModelLayer>> ExpandModel(const ModelDescription& model) {
  return Expander(model).Expand();
}

}  // namespace thimble
