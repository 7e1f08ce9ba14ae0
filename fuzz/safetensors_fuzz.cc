// Feeds arbitrary bytes to the safetensors reader as a file and reads every tensor it accepts.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/train/safetensors_reader.h"

namespace thimble {
namespace {

void ReadEverything(const std::string& path, size_t file_bytes) {
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path);
  if (!reader.ok()) {
    THIMBLE_CHECK(reader.error().kind == ErrorKind::kBadInput, "{}", reader.error().message);
    THIMBLE_CHECK(reader.error().message.find('\n') == std::string::npos, "more than one line");
    return;
  }
  size_t data_bytes = 0;
  for (const TensorEntry& entry : reader->tensors()) {
    THIMBLE_CHECK(reader->Find(entry.name) == &entry, "not found by its name");
    std::vector<std::byte> data(static_cast<size_t>(entry.end - entry.begin));
    data_bytes += data.size();
    THIMBLE_CHECK(reader->Read(entry, data).ok() == entry.dtype.has_value(), "unexpected answer");
  }
  THIMBLE_CHECK(data_bytes <= file_bytes, "more data than the file has");
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const int fd = ::memfd_create("safetensors_fuzz", MFD_CLOEXEC);
  THIMBLE_CHECK(fd >= 0, "memfd_create failed");
  if (::write(fd, bytes, size) == static_cast<ssize_t>(size)) {
    thimble::ReadEverything("/proc/self/fd/" + std::to_string(fd), size);
  }
  ::close(fd);
  return 0;
}
