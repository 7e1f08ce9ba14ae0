// CIFAR-10 and CIFAR-100 in their binary versions: records of one or two label bytes and 3,072
// pixel bytes (three planes of 32 x 32). Images are read from the files one record at a time;
// nothing is cached.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"

namespace thimble {

enum class CifarVersion : uint8_t { kCifar10, kCifar100 };

struct CifarData {
  std::unique_ptr<ImageDataset> train;
  std::unique_ptr<ImageDataset> test;
  uint64_t checksum = 0;  // CRC-64 of all files, one after the other
};

// Opens and checks the files of `folder`: they exist, hold whole records (any number of them), and
// every label is in range. CIFAR-100 uses its 100 fine labels. An error names file, offset, what
// was found and what was expected.
Result<CifarData> OpenCifar(CifarVersion version, const std::string& folder);

// The properties of the published files.
ImageDescription PublishedCifar(CifarVersion version);

}  // namespace thimble
