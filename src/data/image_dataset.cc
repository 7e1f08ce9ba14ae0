#include "thimble/data/image_dataset.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "thimble/base/nearest_name.h"
#include "thimble/base/sealed_text.h"
#include "thimble/data/cifar.h"
#include "thimble/data/shapes_dataset.h"
#include "thimble/data/split.h"

namespace thimble {
namespace {

Error UnknownSpec(std::string_view spec) {
  return BadInput(fmt::format(
      "data '{}': unknown; expected shapes, shapes:TRAIN, "
      "shapes:TRAIN,TEST (numbers of images), cifar10:DIR or cifar100:DIR{}",
      spec, DidYouMean(spec.substr(0, spec.find(':')), {"shapes", "cifar10", "cifar100"})));
}

Result<int64_t> ParseShapesSize(std::string_view text) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadInput(fmt::format("'{}' is not a number of images", text));
  }
  return size;
}

// The images of "shapes" are the same for every run, so that accuracies can be compared; the run's
// seed decides their order.
constexpr uint64_t kShapesSeed = 0;

// `sizes` is what follows "shapes:", empty where nothing does.
Result<ImageData> OpenShapes(std::string_view sizes, const DataOptions& options) {
  int64_t train = options.shapes_train;
  int64_t test = options.shapes_test;
  const size_t comma = sizes.find(',');
  if (!sizes.empty()) {
    THIMBLE_ASSIGN_OR_RETURN(train, ParseShapesSize(sizes.substr(0, comma)));
  }
  if (comma != std::string_view::npos) {
    THIMBLE_ASSIGN_OR_RETURN(test, ParseShapesSize(sizes.substr(comma + 1)));
  }
  for (const int64_t size : {train, test}) {
    if (size >= 1 && size <= INT32_MAX) continue;
    return BadInput(fmt::format("{} images, expected 1 to {}", size, INT32_MAX));
  }
  ImageData data;
  data.train = std::make_unique<ShapesDataset>(kShapesSeed, ShapesSplit::kTrain, train);
  data.test = std::make_unique<ShapesDataset>(kShapesSeed, ShapesSplit::kTest, test);
  return data;
}

Result<ImageData> OpenCifarData(CifarVersion version, std::string_view folder) {
  THIMBLE_ASSIGN_OR_RETURN(CifarData cifar, OpenCifar(version, std::string(folder)));
  ImageData data;
  data.train = std::move(cifar.train);
  data.test = std::move(cifar.test);
  data.identity = FormatSeal(cifar.checksum);
  data.augmentation = Augmentation::kCropFlip;
  return data;
}

Result<ImageData> OpenByName(std::string_view spec, const DataOptions& options) {
  const size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? spec.substr(colon + 1) : "";
  // "shapes:" and "cifar10:" name nothing after the colon, "cifar10" has no folder.
  if (has_argument && argument.empty()) return UnknownSpec(spec);
  if (name == "shapes") {
    auto data = OpenShapes(argument, options);
    if (!data.ok()) return WithContext(fmt::format("data '{}'", spec), data.error());
    return data;
  }
  if (has_argument && name == "cifar10") return OpenCifarData(CifarVersion::kCifar10, argument);
  if (has_argument && name == "cifar100") return OpenCifarData(CifarVersion::kCifar100, argument);
  return UnknownSpec(spec);
}

}  // namespace

Result<ImageData> OpenImageData(std::string_view spec, const DataOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(ImageData data, OpenByName(spec, options));
  data.name = spec.substr(0, spec.find(':'));
  data.identity =
      fmt::format("{}, {} training and {} test images{}{}", data.name, data.train->size(),
                  data.test->size(), data.identity.empty() ? "" : ", ", data.identity);
  if (options.validation != 0) {
    THIMBLE_ASSIGN_OR_RETURN(DatasetSplit split,
                             SplitDataset(std::move(data.train), options.validation, options.seed));
    data.train = std::move(split.train);
    data.validation = std::move(split.validation);
  }
  return data;
}

Result<const ImageDataset*> FindPart(const ImageData& data, std::string_view part) {
  if (part == "train") return data.train.get();
  if (part == "test") return data.test.get();
  if (part != "validation") {
    return BadInput(fmt::format("part '{}': expected train, validation or test", part));
  }
  if (data.validation == nullptr) return BadInput("part 'validation': needs --validation N");
  return data.validation.get();
}

}  // namespace thimble
