// ImageDataset: labelled images of one size, read by index. OpenImageData turns the argument of
// --data into the data sets of a run.
//
//   auto data = OpenImageData("cifar10:/data/cifar-10-batches-bin", {.seed = 1, .validation =
//   5000}); data->train->Read(17, pixels, label);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/augmentation.h"
#include "thimble/base/result.h"

namespace thimble {

struct ImageFormat {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t classes = 0;
  // Per channel over the training images, in units of the bytes (0..255).
  std::vector<double> mean;
  std::vector<double> std;

  int64_t image_bytes() const { return height * width * channels; }
};

class ImageDataset {
 public:
  virtual ~ImageDataset() = default;

  virtual const ImageFormat& format() const = 0;
  // Number of images; at least 1 and less than 2^32.
  virtual int64_t size() const = 0;

  // Writes image `index` as (H, W, C) bytes and its label in [0, classes). Requires 0 <= index <
  // size() and pixels.size() == image_bytes(). Thread-safe; allocates nothing on success.
  virtual Result<void> Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const = 0;
};

struct ImageData {
  std::string name;  // "shapes", "cifar10", "cifar100"
  std::unique_ptr<ImageDataset> train;
  std::unique_ptr<ImageDataset> validation;  // null without --validation
  std::unique_ptr<ImageDataset> test;
  Augmentation augmentation = Augmentation::kNone;  // of `train` in the usual recipe
  // Identifies the images, independent of where their files are: "cifar10, 50000 training and 10000
  // test images, crc64:…". Counts are before images are held out for validation.
  std::string identity;
};

// Number of images in each part.
struct ImageCounts {
  int64_t train = 0;
  int64_t validation = 0;
  int64_t test = 0;
};
ImageCounts CountsOf(const ImageData& data);

// The properties of a data set that a plan depends on.
struct ImageDescription {
  ImageFormat format;
  Augmentation augmentation = Augmentation::kNone;
  ImageCounts counts;
};

// Finds a part by name: "train", "validation" or "test". BadInput for other names, and for
// "validation" without --validation.
Result<const ImageDataset*> FindPart(const ImageData& data, std::string_view part);

struct DataOptions {
  uint64_t seed = 0;
  // Images held out of the training set, chosen by the seed.
  int64_t validation = 0;
  // Sizes for "shapes" if the specification gives none.
  int64_t shapes_train = 10000;
  int64_t shapes_test = 2000;
};

// `spec` names a data set and its argument: "shapes:500,100", "cifar10:DIR" (DataForms lists all
// forms). BadInput for anything else, for impossible sizes, and for damaged files.
Result<ImageData> OpenImageData(std::string_view spec, const DataOptions& options);

// Describes a published data set without its files, with the published numbers of images: its
// folder may be missing or omitted ("cifar10"). Other data sets are opened.
Result<ImageDescription> DescribeImageData(std::string_view spec, const DataOptions& options);

// All forms of a specification, as help shows them: "shapes[:TRAIN[,TEST]]|cifar10:DIR|…".
std::string DataForms();

}  // namespace thimble
