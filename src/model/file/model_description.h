// ModelDescription: a model file as it is written, every part with its place in the file. Blocks
// are not yet put in where they are used.
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

// A word of the file; empty where it was not given.
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

// What stands where a layer's input has its place: what the block (or the network) was given.
inline constexpr int kBlockInput = -1;

struct LayerDescription {
  std::string type;  // of layer_types.h, or the name of a block
  PlacedText name;   // of parameters; "{i}" in it is the number of the repetition
  PlacedText as;     // another name for the output
  PlacedText from;   // whose output comes in; by default that of the layer before
  PlacedText with;   // the other part of a sum
  PlacedNumber repeat{1, {}, {}};
  PlacedNumber first{0, {}, {}};                // what {i} begins with
  std::map<std::string, PlacedNumber> numbers;  // by key: of the type, or parameters of the block
  SourcePlace place;
  // Which layers of the same block `from` and `with` name, or kBlockInput; ResolveModel finds them.
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

  // nullptr where there is none.
  const BlockDescription* FindBlock(const std::string& name) const;
};

// Every number may be this; it stands for the classes of [input].
inline constexpr const char* kClassesParameter = "classes";
// What `from` and `with` call the input of the block.
inline constexpr const char* kInputName = "input";

}  // namespace thimble
