// ModelFile: a network described by a small TOML file instead of C++ (docs/model-files.md).
//
// A file is read in four steps, each a function in file/: the text is parsed into a description,
// names are resolved, blocks and repetitions are expanded, and for each batch size a NetworkBuilder
// builds the layers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/model/file/expand_model.h"
#include "thimble/model/image_classifier.h"

namespace thimble {

struct ModelFile {
  std::string path;
  std::string text;
  ImageSpec images;         // [input]; mean, std and augmentation come from the data
  SourcePlace input_place;  // of [input]
  std::vector<ModelLayer> layers;
};

// Whether --model names a file: it ends in ".toml".
bool IsModelFile(std::string_view model);
// The display name of a model: its name, or its file name without folders and ".toml".
std::string ModelName(const std::string& model);

// kBadInput with path, line, column and reason for every error in the file, except shape errors,
// which are found when a network is built. Files are at most kMaxModelFileBytes long.
inline constexpr int64_t kMaxModelFileBytes = 256 << 10;
Result<ModelFile> ReadModelFile(const std::string& path);
// The same from text; `path` is for messages and the name.
Result<ModelFile> ParseModelFile(std::string text, const std::string& path);

// The network for these images. Fails, naming both formats, if they do not match [input].
Result<ImageClassifier> ToClassifier(const ModelFile& file, const ImageSpec& images);

}  // namespace thimble
