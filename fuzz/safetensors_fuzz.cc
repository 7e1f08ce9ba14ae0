// Feeds arbitrary bytes to the safetensors reader as a file and reads every tensor it accepts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/weights/safetensors_reader.h"

namespace thimble {
namespace {

void ReadEverything(const std::string& path, size_t file_bytes) {
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path);
  if (!reader.ok()) return CheckError(reader.error(), path);
  size_t data_bytes = 0;
  for (const TensorEntry& entry : reader->tensors()) {
    THIMBLE_CHECK(reader->Find(entry.name) == &entry, "a tensor is not found by its name");
    std::vector<std::byte> data(static_cast<size_t>(entry.end - entry.begin));
    data_bytes += data.size();
    THIMBLE_CHECK(reader->Read(entry, data).ok() == entry.dtype.has_value(),
                  "reading a tensor gave an unexpected result");
  }
  THIMBLE_CHECK(data_bytes <= file_bytes, "more data than the file has");
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  const std::string path = folder.Write("f.safetensors", thimble::AsText(bytes, size));
  thimble::ReadEverything(path, size);
  return 0;
}
