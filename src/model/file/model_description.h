// ModelDescription: a parsed model file, every part with its place in the file. Blocks are not yet
// expanded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/model/image_classifier.h"

namespace thimble {

struct SourcePlace {
  int line = 0;  // from 1
  int column = 0;
  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

// "net.toml:12:3"
std::string ToString(const std::string& path, SourcePlace place);
// kBadInput: "net.toml:12:3: what".
Error ErrorAt(const std::string& path, SourcePlace place, const std::string& what);

// A string of the file; empty if not given.
struct PlacedText {
  std::string text;
  SourcePlace place;
};

// A whole number of the file, or the parameter that stands for one ("$channels").
struct PlacedNumber {
  int64_t value = 0;
  std::string parameter;  // without the dollar; empty for a number
  SourcePlace place;
};

// Input index that stands for the input of the block (or of the network).
inline constexpr int kBlockInput = -1;

struct LayerDescription {
  std::string type;  // a name from layer_types.h, or of a block
  PlacedText name;   // prefix of parameter names; "{i}" is the number of the repetition
  PlacedText as;     // another name for the output
  PlacedText from;   // the layer whose output is the input; default: the previous one
  PlacedText with;   // the second operand of a sum
  PlacedNumber repeat{1, {}, {}};
  PlacedNumber first{0, {}, {}};                // the first value of {i}
  std::map<std::string, PlacedNumber> numbers;  // by key of the type or parameter of the block
  SourcePlace place;
  // Indices of the layers in the same block that `from` and `with` name, or kBlockInput; set by
  // ResolveModel.
  int input_index = kBlockInput;
  int with_index = kBlockInput;
};

struct BlockDescription {
  std::string name;
  std::vector<PlacedText> parameters;
  std::vector<LayerDescription> layers;  // at least one
  SourcePlace place;
};

struct ModelDescription {
  std::string path;
  ImageSpec images;         // [input], with the usual mean and std
  SourcePlace input_place;  // of [input]
  std::vector<BlockDescription> blocks;
  BlockDescription body;  // [[layers]]; without name and parameters

  // nullptr if there is none.
  const BlockDescription* FindBlock(const std::string& name) const;
};

// A parameter that is defined everywhere: the number of classes from [input].
inline constexpr const char* kClassesParameter = "classes";
// The name of the block's input in `from` and `with`.
inline constexpr const char* kInputName = "input";

}  // namespace thimble
