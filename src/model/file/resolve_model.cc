#include "thimble/model/file/resolve_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace thimble {
namespace {

// Resolves the names inside one block; each block has its own scope.
class BlockResolver {
 public:
  BlockResolver(const ModelDescription& model, BlockDescription& block)
      : model_(model), block_(block) {}

  Result<void> Resolve() {
    for (size_t index = 0; index < block_.layers.size(); ++index) {
      THIMBLE_TRY(ResolveLayer(static_cast<int>(index), block_.layers[index]));
    }
    for (const PlacedText& parameter : block_.parameters) {
      if (used_parameters_.contains(parameter.text)) continue;
      return At(parameter.place, fmt::format("parameter '{}' of block '{}' is never used",
                                             parameter.text, block_.name));
    }
    return {};
  }

 private:
  struct Named {
    int index;
    SourcePlace place;
  };

  Result<void> ResolveLayer(int index, LayerDescription& layer) {
    layer.input_index = index - 1;  // kBlockInput for the first
    if (!layer.from.text.empty()) {
      THIMBLE_ASSIGN_OR_RETURN(layer.input_index, Find("from", layer.from));
    }
    if (!layer.with.text.empty()) {
      THIMBLE_ASSIGN_OR_RETURN(layer.with_index, Find("with", layer.with));
    }
    // A name with a counter stands for several layers; `as` names the last of them.
    if (layer.name.text.find('{') == std::string::npos) THIMBLE_TRY(Define(layer.name, index));
    THIMBLE_TRY(Define(layer.as, index));
    THIMBLE_TRY(UseParameter(layer.repeat));
    THIMBLE_TRY(UseParameter(layer.first));
    for (const auto& [key, number] : layer.numbers) THIMBLE_TRY(UseParameter(number));
    return {};
  }

  Result<int> Find(std::string_view key, const PlacedText& name) const {
    if (name.text == kInputName) return kBlockInput;
    const auto found = named_.find(name.text);
    if (found != named_.end()) return found->second.index;
    return At(name.place,
              fmt::format("'{}': no layer above is called '{}'{}", key, name.text,
                          block_.name.empty() ? "" : fmt::format(" in block '{}'", block_.name)));
  }

  Result<void> Define(const PlacedText& name, int index) {
    if (name.text.empty()) return {};
    if (name.text == kInputName) {
      return At(name.place,
                fmt::format("'{}' names the input; a layer needs another name", name.text));
    }
    const auto [entry, fresh] = named_.emplace(name.text, Named{index, name.place});
    if (fresh || entry->second.index == index) return {};
    return At(name.place, fmt::format("the name '{}' is used twice, first in line {}", name.text,
                                      entry->second.place.line));
  }

  Result<void> UseParameter(const PlacedNumber& number) {
    if (number.parameter.empty() || number.parameter == kClassesParameter) return {};
    if (!IsParameter(number.parameter)) {
      return At(number.place,
                fmt::format("unknown parameter '${}'{}", number.parameter,
                            block_.name.empty() ? "; only blocks have parameters" : ""));
    }
    used_parameters_.insert(number.parameter);
    return {};
  }

  bool IsParameter(const std::string& name) const {
    return std::any_of(block_.parameters.begin(), block_.parameters.end(),
                       [&](const PlacedText& parameter) { return parameter.text == name; });
  }
  Error At(SourcePlace place, const std::string& what) const {
    return ErrorAt(model_.path, place, what);
  }

  const ModelDescription& model_;
  BlockDescription& block_;
  std::map<std::string, Named> named_;
  std::set<std::string> used_parameters_;
};

// Checks how deeply blocks are nested.
class NestingCheck {
 public:
  explicit NestingCheck(const ModelDescription& model) : model_(model) {}

  Result<void> Check() {
    for (const BlockDescription& block : model_.blocks) THIMBLE_TRY(DepthOf(block));
    return {};
  }

 private:
  // The depth of this block, including the blocks inside it.
  Result<int> DepthOf(const BlockDescription& block) {
    const auto known = depths_.find(block.name);
    if (known != depths_.end()) return known->second;
    path_.push_back(block.name);
    int depth = 1;
    for (const LayerDescription& layer : block.layers) {
      const BlockDescription* used = model_.FindBlock(layer.type);
      if (used == nullptr) continue;
      THIMBLE_TRY(CheckCircle(layer));
      THIMBLE_TRY(CheckDepth(layer, static_cast<int>(path_.size()) + 1));
      THIMBLE_ASSIGN_OR_RETURN(const int inside, DepthOf(*used));
      THIMBLE_TRY(CheckDepth(layer, inside + 1));
      depth = std::max(depth, inside + 1);
    }
    path_.pop_back();
    depths_[block.name] = depth;
    return depth;
  }

  Result<void> CheckCircle(const LayerDescription& layer) const {
    const auto begin = std::find(path_.begin(), path_.end(), layer.type);
    if (begin == path_.end()) return {};
    std::vector<std::string> circle(begin, path_.end());
    circle.push_back(layer.type);
    return ErrorAt(model_.path, layer.place,
                   fmt::format("a block contains itself: {}", fmt::join(circle, " -> ")));
  }

  Result<void> CheckDepth(const LayerDescription& layer, int depth) const {
    if (depth <= kMaxBlockDepth) return {};
    return ErrorAt(model_.path, layer.place,
                   fmt::format("blocks are nested more than {} levels deep", kMaxBlockDepth));
  }

  const ModelDescription& model_;
  std::vector<std::string> path_;      // from the outermost block to the current one
  std::map<std::string, int> depths_;  // of finished blocks
};

}  // namespace

Result<void> ResolveModel(ModelDescription& model) {
  for (BlockDescription& block : model.blocks) {
    THIMBLE_TRY(BlockResolver(model, block).Resolve());
  }
  THIMBLE_TRY(BlockResolver(model, model.body).Resolve());
  return NestingCheck(model).Check();
}

}  // namespace thimble
