#include "thimble/data/image_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "thimble/base/nearest_name.h"
#include "thimble/base/sealed_text.h"
#include "thimble/data/cifar.h"
#include "thimble/data/shapes_dataset.h"
#include "thimble/data/split.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {
namespace {

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

Result<ImageData> MakeShapes(std::string_view sizes, const DataOptions& options) {
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

Result<ImageData> OpenShapes(std::string_view sizes, const DataOptions& options) {
  auto data = MakeShapes(sizes, options);
  if (data.ok()) return data;
  return WithContext(fmt::format("data 'shapes{}{}'", sizes.empty() ? "" : ":", sizes),
                     data.error());
}

Result<ImageData> OpenCifarData(CifarVersion version, std::string_view folder) {
  THIMBLE_ASSIGN_OR_RETURN(CifarData cifar, OpenCifar(version, std::string(folder)));
  ImageData data;
  data.train = std::move(cifar.train);
  data.test = std::move(cifar.test);
  data.identity = FormatSeal(cifar.checksum);
  data.augmentation = PublishedCifar(version).augmentation;
  return data;
}

// A data set that --data can name.
struct DatasetKind {
  std::string_view name;
  std::string_view form;  // as shown in help; an argument in brackets is optional
  // `argument` is the text after the colon, or empty.
  Result<ImageData> (*open)(std::string_view argument, const DataOptions& options);
  // Describes the data set without opening its files; nullptr if it has none.
  ImageDescription (*published)() = nullptr;

  bool needs_argument() const { return form.find('[') == std::string_view::npos; }
};

// All data sets; a new one is one entry here.
constexpr DatasetKind kDatasets[] = {
    {"shapes", "shapes[:TRAIN[,TEST]]", OpenShapes},
    {"cifar10", "cifar10:DIR",
     [](std::string_view folder, const DataOptions&) {
       return OpenCifarData(CifarVersion::kCifar10, folder);
     },
     [] { return PublishedCifar(CifarVersion::kCifar10); }},
    {"cifar100", "cifar100:DIR",
     [](std::string_view folder, const DataOptions&) {
       return OpenCifarData(CifarVersion::kCifar100, folder);
     },
     [] { return PublishedCifar(CifarVersion::kCifar100); }},
};

// Names sets of images and of text: either may have been meant.
Error UnknownSpec(std::string_view spec) {
  std::vector<std::string> names = {"numbers", "bitext"};
  for (const DatasetKind& kind : kDatasets) names.emplace_back(kind.name);
  return BadInput(fmt::format("data '{}': unknown; expected {}|{}{}", spec, DataForms(),
                              TextDataForms(), DidYouMean(spec.substr(0, spec.find(':')), names)));
}

struct NamedDataset {
  const DatasetKind& kind;
  std::string_view argument;
};

// "shapes:" and "cifar10:" have nothing after the colon.
Result<NamedDataset> FindDataset(std::string_view spec) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  const bool ends_in_colon = colon + 1 == spec.size();
  for (const DatasetKind& kind : kDatasets) {
    if (kind.name != spec.substr(0, colon) || ends_in_colon) continue;
    return NamedDataset{kind, spec.substr(std::min(colon + 1, spec.size()))};
  }
  return UnknownSpec(spec);
}

}  // namespace

std::string DataForms() {
  std::string forms;
  for (const DatasetKind& kind : kDatasets) {
    if (!forms.empty()) forms += "|";
    forms += kind.form;
  }
  return forms;
}

ImageCounts CountsOf(const ImageData& data) {
  return {data.train->size(), data.validation ? data.validation->size() : 0, data.test->size()};
}

Result<ImageDescription> DescribeImageData(std::string_view spec, const DataOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(const NamedDataset named, FindDataset(spec));
  if (named.kind.published == nullptr) {
    THIMBLE_ASSIGN_OR_RETURN(const ImageData data, OpenImageData(spec, options));
    return ImageDescription{data.train->format(), data.augmentation, CountsOf(data)};
  }
  ImageDescription known = named.kind.published();
  if (options.validation >= known.counts.train) {
    return BadInput(fmt::format("validation: cannot hold out {} of {} training images",
                                options.validation, known.counts.train));
  }
  known.counts.train -= options.validation;
  known.counts.validation = options.validation;
  return known;
}

Result<ImageData> OpenImageData(std::string_view spec, const DataOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(const NamedDataset named, FindDataset(spec));
  if (named.argument.empty() && named.kind.needs_argument()) return UnknownSpec(spec);
  THIMBLE_ASSIGN_OR_RETURN(ImageData data, named.kind.open(named.argument, options));
  data.name = named.kind.name;
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
  if (data.validation == nullptr) return BadInput("part 'validation': requires --validation N");
  return data.validation.get();
}

}  // namespace thimble
