// ModelFile: a network without C++, as a small TOML file (docs/model-files.md).
//
// A file is read in four steps, each a function of its own in file/: the text becomes a
// description, names in it are resolved, blocks and repetitions are written out, and for each
// batch size the layers go through a NetworkBuilder.
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
  ImageSpec images;         // [input]; mean, std and augmentation are a matter of the data
  SourcePlace input_place;  // of [input]
  std::vector<ModelLayer> layers;
};

// Whether --model means a file: it ends in ".toml".
bool IsModelFile(std::string_view model);
// What a model is called: its name, or that of its file without folders and ".toml".
std::string ModelName(const std::string& model);

// kBadInput with path, line, column and reason for whatever is wrong with the file, except what
// shapes show: that comes when a network is built. Files are at most kMaxModelFileBytes long.
inline constexpr int64_t kMaxModelFileBytes = 256 << 10;
Result<ModelFile> ReadModelFile(const std::string& path);
// The same from text; `path` is for messages and the name.
Result<ModelFile> ParseModelFile(std::string text, const std::string& path);

// The network for these images. An error that says both where they are not those of [input].
Result<ImageClassifier> ToClassifier(const ModelFile& file, const ImageSpec& images);

}  // namespace thimble
