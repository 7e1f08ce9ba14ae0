#include "thimble/train/safetensors_writer.h"

#include <utility>

namespace thimble {

SafetensorsWriter::SafetensorsWriter(AtomicFile file, int64_t missing_bytes)
    : file_(std::move(file)), missing_bytes_(missing_bytes) {}

Result<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                    std::span<const TensorSpec> specs,
                                                    const TensorMetadata& metadata) {
  const Result<std::string> header = FormatSafetensorsHeader(specs, metadata);
  if (!header.ok()) return WithContext(path, header.error());
  int64_t data_bytes = 0;  // fits: the header could be written
  for (const TensorSpec& spec : specs) {
    data_bytes += spec.shape.elements() * static_cast<int64_t>(SizeBytes(spec.dtype));
  }
  THIMBLE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  THIMBLE_TRY(file.Write(std::as_bytes(std::span(*header))));
  return SafetensorsWriter(std::move(file), data_bytes);
}

Result<void> SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  THIMBLE_CHECK(static_cast<int64_t>(bytes.size()) <= missing_bytes_,
                "{} bytes appended where {} are missing", bytes.size(), missing_bytes_);
  THIMBLE_TRY(file_.Write(bytes));
  missing_bytes_ -= static_cast<int64_t>(bytes.size());
  return {};
}

Result<void> SafetensorsWriter::Finish() {
  THIMBLE_CHECK(missing_bytes_ == 0, "finished with {} bytes missing", missing_bytes_);
  return file_.Commit();
}

}  // namespace thimble
