#include "thimble/data/cifar.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/base/crc64.h"
#include "thimble/base/file_reader.h"

namespace thimble {
namespace {

constexpr int64_t kCifarSide = 32;
constexpr int64_t kCifarChannels = 3;
constexpr int64_t kPlane = kCifarSide * kCifarSide;
constexpr int64_t kPixelBytes = kPlane * kCifarChannels;
constexpr int64_t kMaxLabelBytes = 2;

// The record layout of one version. The last label byte is the class; the others are only checked.
struct Layout {
  std::string_view name;
  std::vector<int> label_ranges;  // number of values of each label byte
  std::vector<std::string> train_files;
  std::vector<std::string> test_files;
  std::vector<double> mean;  // of the published training images
  std::vector<double> std;

  int64_t label_bytes() const { return std::ssize(label_ranges); }
  int64_t record_bytes() const { return label_bytes() + kPixelBytes; }
  ImageFormat format() const {
    return {kCifarSide, kCifarSide, kCifarChannels, label_ranges.back(), mean, std};
  }
};

Layout MakeLayout(CifarVersion version) {
  if (version == CifarVersion::kCifar10) {
    return {"CIFAR-10",
            {10},
            {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"},
            {"test_batch.bin"},
            {125.3, 123.0, 113.9},
            {63.0, 62.1, 66.7}};
  }
  return {"CIFAR-100",           {20, 100},         {"train.bin"}, {"test.bin"},
          {129.3, 124.1, 112.4}, {68.2, 65.4, 70.4}};
}

// Checks the label bytes at the beginning of `record`.
Result<void> CheckLabels(const Layout& layout, const FileReader& reader, int64_t record_index,
                         const std::byte* record) {
  for (int64_t i = 0; i < layout.label_bytes(); ++i) {
    const int value = std::to_integer<int>(record[i]);
    const int range = layout.label_ranges[i];
    if (value < range) continue;
    return BadInput(fmt::format(
        "{}: label of record {} (offset {}) is {}, expected 0 to {} in {}", reader.path(),
        record_index, record_index * layout.record_bytes() + i, value, range - 1, layout.name));
  }
  return {};
}

// Reads every record once, in chunks of about 64 KiB.
Result<void> CheckAllLabels(const Layout& layout, const FileReader& reader, int64_t records,
                            Crc64& checksum) {
  constexpr int64_t kChunkRecords = 21;
  const int64_t record_bytes = layout.record_bytes();
  std::vector<std::byte> chunk(static_cast<size_t>(kChunkRecords * record_bytes));
  for (int64_t first = 0; first < records; first += kChunkRecords) {
    const int64_t count = std::min(kChunkRecords, records - first);
    const auto bytes = std::span(chunk).first(static_cast<size_t>(count * record_bytes));
    THIMBLE_TRY(reader.ReadAt(first * record_bytes, bytes));
    checksum.Append(bytes);
    for (int64_t i = 0; i < count; ++i) {
      THIMBLE_TRY(CheckLabels(layout, reader, first + i, chunk.data() + i * record_bytes));
    }
  }
  return {};
}

// Number of records in the file.
Result<int64_t> CheckSize(const Layout& layout, const FileReader& reader) {
  const int64_t record_bytes = layout.record_bytes();
  const int64_t records = reader.size_bytes() / record_bytes;
  const int64_t rest = reader.size_bytes() % record_bytes;
  if (reader.size_bytes() == 0) {
    return BadInput(fmt::format("{}: file is empty, expected {} records of {} bytes", reader.path(),
                                layout.name, record_bytes));
  }
  if (rest != 0) {
    return BadInput(fmt::format(
        "{}: size of {} bytes is not a multiple of {} (a {} record): record {} at offset {} has {} "
        "bytes",
        reader.path(), reader.size_bytes(), record_bytes, layout.name, records,
        records * record_bytes, rest));
  }
  return records;
}

class CifarDataset final : public ImageDataset {
 public:
  static Result<std::unique_ptr<ImageDataset>> Open(const Layout& layout, const std::string& folder,
                                                    const std::vector<std::string>& names,
                                                    Crc64& checksum) {
    auto dataset = std::make_unique<CifarDataset>(layout);
    for (const std::string& name : names) {
      auto reader = FileReader::Open(folder + "/" + name);
      if (!reader.ok()) {
        Error error = reader.error();
        error.message += fmt::format(" (expected a file of the binary version of {})", layout.name);
        return error;
      }
      THIMBLE_ASSIGN_OR_RETURN(const int64_t records, CheckSize(layout, *reader));
      THIMBLE_TRY(CheckAllLabels(layout, *reader, records, checksum));
      dataset->files_.push_back({std::move(*reader), records});
      dataset->size_ += records;
    }
    if (dataset->size_ > INT32_MAX) {
      return BadInput(fmt::format("{}: holds {} images, expected at most {}", folder,
                                  dataset->size_, INT32_MAX));
    }
    return std::unique_ptr<ImageDataset>(std::move(dataset));
  }

  explicit CifarDataset(const Layout& layout) : layout_(layout), format_(layout.format()) {}

  const ImageFormat& format() const override { return format_; }
  int64_t size() const override { return size_; }

  Result<void> Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const override {
    THIMBLE_CHECK(index >= 0 && index < size_, "image {} of {}", index, size_);
    THIMBLE_CHECK(std::ssize(pixels) == kPixelBytes);
    size_t file = 0;
    for (; index >= files_[file].records; ++file) index -= files_[file].records;
    const FileReader& reader = files_[file].reader;
    std::array<std::byte, kMaxLabelBytes + kPixelBytes> record;
    THIMBLE_TRY(
        reader.ReadAt(index * layout_.record_bytes(),
                      std::span(record).first(static_cast<size_t>(layout_.record_bytes()))));
    // Checked again, because the file may have changed since it was opened.
    THIMBLE_TRY(CheckLabels(layout_, reader, index, record.data()));
    label = std::to_integer<int32_t>(record[layout_.label_bytes() - 1]);
    const std::byte* planes = record.data() + layout_.label_bytes();  // (C, H, W)
    for (int64_t pixel = 0; pixel < kPlane; ++pixel) {
      for (int64_t channel = 0; channel < kCifarChannels; ++channel) {
        pixels[pixel * kCifarChannels + channel] =
            std::to_integer<uint8_t>(planes[channel * kPlane + pixel]);
      }
    }
    return {};
  }

 private:
  struct File {
    FileReader reader;
    int64_t records;
  };

  Layout layout_;
  ImageFormat format_;
  std::vector<File> files_;
  int64_t size_ = 0;
};

}  // namespace

ImageDescription PublishedCifar(CifarVersion version) {
  return {MakeLayout(version).format(), Augmentation::kCropFlip, {.train = 50000, .test = 10000}};
}

Result<CifarData> OpenCifar(CifarVersion version, const std::string& folder) {
  const Layout layout = MakeLayout(version);
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return BadInput(fmt::format(
        "{}: no such folder; expected the binary version of {} there: {}, {}", folder, layout.name,
        fmt::join(layout.train_files, ", "), fmt::join(layout.test_files, ", ")));
  }
  CifarData data;
  Crc64 checksum;
  THIMBLE_ASSIGN_OR_RETURN(data.train,
                           CifarDataset::Open(layout, folder, layout.train_files, checksum));
  THIMBLE_ASSIGN_OR_RETURN(data.test,
                           CifarDataset::Open(layout, folder, layout.test_files, checksum));
  data.checksum = checksum.value();
  return data;
}

}  // namespace thimble
