// Tiny data sets for tests: images whose bytes identify them, and CIFAR files made by hand.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "thimble/data/image_dataset.h"

namespace thimble {

// Image `i` has the label i and its number in all of its bytes (mod 251, a prime, so that no power
// of two hides a mistake).
class NumberedDataset final : public ImageDataset {
 public:
  // Reading `broken_index` fails.
  explicit NumberedDataset(int64_t size, int64_t broken_index = -1)
      : size_(size), broken_index_(broken_index) {}

  const ImageFormat& format() const override { return format_; }
  int64_t size() const override { return size_; }

  Result<void> Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const override {
    if (index == broken_index_) return Failed("broken image");
    std::fill(pixels.begin(), pixels.end(), static_cast<uint8_t>(index % 251));
    label = static_cast<int32_t>(index);
    return {};
  }

 private:
  int64_t size_;
  int64_t broken_index_;
  ImageFormat format_{8, 8, 3, 1000, {0, 0, 0}, {1, 1, 1}};
};

// A new folder in the test's temporary folder; removed at the end.
class TestFolder {
 public:
  explicit TestFolder(const std::string& name)
      : path_(::testing::TempDir() + "/thimble_data_" + std::to_string(::getpid()) + name) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }

  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(File(name), std::ios::binary) << content;
  }

 private:
  std::string path_;
};

// One record with the label bytes `labels` and pixel bytes that count up from `start`, so that byte
// (channel c, row y, column x) is start + 1024 c + 32 y + x mod 256.
inline std::string CifarRecord(const std::string& labels, int start) {
  std::string record = labels;
  for (int i = 0; i < 3072; ++i) record += static_cast<char>((start + i) % 256);
  return record;
}

// Two records in each training file (labels 0..9 in order), three in the test file.
inline void WriteCifar10(const TestFolder& folder) {
  for (int file = 0; file < 5; ++file) {
    std::string content;
    for (int record = 0; record < 2; ++record) {
      const auto label = static_cast<char>(2 * file + record);
      content += CifarRecord(std::string(1, label), 10 * label);
    }
    folder.Write("data_batch_" + std::to_string(file + 1) + ".bin", content);
  }
  folder.Write("test_batch.bin",
               CifarRecord("\1", 1) + CifarRecord("\2", 2) + CifarRecord("\3", 3));
}

// Records with coarse label 19 and fine labels 99, 98, ...
inline void WriteCifar100(const TestFolder& folder) {
  folder.Write("train.bin", CifarRecord("\x13\x63", 0) + CifarRecord("\x13\x62", 7));
  folder.Write("test.bin", CifarRecord("\x13\x61", 9));
}

}  // namespace thimble
