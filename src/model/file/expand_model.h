// Expands the blocks and repetitions of a model file into a flat list of layers with known names
// and numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/model/file/layer_types.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

// Input index that stands for the images instead of a layer's output.
inline constexpr int kImages = -1;

struct ModelLayer {
  const LayerType* type = nullptr;
  std::string name;              // with the names of the blocks around it
  int input = kImages;           // the index of an earlier layer
  int other = kImages;           // the second operand of a sum, likewise
  std::vector<int64_t> numbers;  // in the order of the type's keys
  SourcePlace place;
  int used_at_line = 0;  // inside a block: line of its outermost use; otherwise 0
};

// Requires a model that ResolveModel accepted. Fails, with the place in the file, if there are more
// than kMaxModelLayers layers (which bounds time and memory), a parameter's value is out of range
// for its layer, two layers get the same name, or a layer's output is never used. The last layer
// outputs the scores.
Result<std::vector<ModelLayer>> ExpandModel(const ModelDescription& model);

}  // namespace thimble
