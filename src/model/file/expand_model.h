// A model file with blocks and repetitions written out: one layer after the other, every name and
// number known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/model/file/layer_types.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

// What comes in where it is no layer's output.
inline constexpr int kImages = -1;

struct ModelLayer {
  const LayerType* type = nullptr;
  std::string name;              // with the names of the blocks around it
  int input = kImages;           // the index of an earlier layer
  int other = kImages;           // likewise, of a sum
  std::vector<int64_t> numbers;  // in the order of the type's keys
  SourcePlace place;
  int used_at_line = 0;  // inside blocks: of the outermost use; 0 elsewhere
};

// Requires a model that ResolveModel accepted. An error, with its place, where there would be more
// than kMaxModelLayers (time and memory stay within that), a parameter gives a number that its
// layer cannot take, two layers get one name, or a layer's output is never used. The last layer
// gives the scores.
Result<std::vector<ModelLayer>> ExpandModel(const ModelDescription& model);

}  // namespace thimble
