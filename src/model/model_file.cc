#include "thimble/model/model_file.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "thimble/base/file_reader.h"
#include "thimble/model/file/build_model.h"
#include "thimble/model/file/parse_model.h"
#include "thimble/model/file/resolve_model.h"

namespace thimble {
namespace {

constexpr std::string_view kEnding = ".toml";

std::string Describe(const ImageSpec& images) {
  return fmt::format("{} x {} images of {} channels in {} classes", images.height, images.width,
                     images.channels, images.classes);
}

bool SameImages(const ImageSpec& a, const ImageSpec& b) {
  return a.height == b.height && a.width == b.width && a.channels == b.channels &&
         a.classes == b.classes;
}

}  // namespace

bool IsModelFile(std::string_view model) { return model.ends_with(kEnding); }

std::string ModelName(const std::string& model) {
  if (!IsModelFile(model)) return model;
  const size_t begin = model.rfind('/') + 1;  // 0 if there is no folder
  return model.substr(begin, model.size() - kEnding.size() - begin);
}

Result<ModelFile> ReadModelFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, kMaxModelFileBytes));
  return ParseModelFile(std::move(text), path);
}

Result<ModelFile> ParseModelFile(std::string text, const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(ModelDescription model, ParseModel(text, path));
  THIMBLE_TRY(ResolveModel(model));
  THIMBLE_ASSIGN_OR_RETURN(std::vector<ModelLayer> layers, ExpandModel(model));
  return ModelFile{path, std::move(text), std::move(model.images), model.input_place,
                   std::move(layers)};
}

Result<ImageClassifier> ToClassifier(const ModelFile& file, const ImageSpec& images) {
  if (!SameImages(file.images, images)) {
    return ErrorAt(
        file.path, file.input_place,
        fmt::format("[input] is {}, the data has {}", Describe(file.images), Describe(images)));
  }
  const auto shared = std::make_shared<const ModelFile>(file);
  return ImageClassifier{ModelName(file.path), images,
                         [shared](NetworkBuilder& net, ValueId x) {
                           return BuildModel(net, x, shared->layers, shared->images.classes,
                                             shared->path);
                         },
                         file.text};
}

}  // namespace thimble
