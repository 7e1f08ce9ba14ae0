#include "thimble/train/weights/safetensors_writer.h"

#include <utility>

#include "thimble/base/sealed_text.h"

namespace thimble {

SafetensorsWriter::SafetensorsWriter(AtomicFile file, int64_t missing_bytes, int64_t seal_offset)
    : file_(std::move(file)), missing_bytes_(missing_bytes), seal_offset_(seal_offset) {}

Result<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                    std::span<const TensorSpec> specs,
                                                    const TensorMetadata& metadata) {
  TensorMetadata sealed = metadata;
  sealed[std::string(kChecksumKey)] = kOpenSeal;
  const Result<std::string> header = FormatSafetensorsHeader(specs, sealed);
  if (!header.ok()) return WithContext(path, header.error());
  int64_t data_bytes = 0;  // does not overflow: FormatSafetensorsHeader checked it
  for (const TensorSpec& spec : specs) {
    data_bytes += spec.shape.elements() * static_cast<int64_t>(SizeBytes(spec.dtype));
  }
  THIMBLE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const auto seal_offset = static_cast<int64_t>(FindSafetensorsSeal(*header));
  SafetensorsWriter writer(std::move(file), data_bytes, seal_offset);
  THIMBLE_TRY(writer.Write(std::as_bytes(std::span(*header))));
  return writer;
}

Result<void> SafetensorsWriter::Write(std::span<const std::byte> bytes) {
  checksum_.Append(bytes);
  return file_.Write(bytes);
}

Result<void> SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  THIMBLE_CHECK(static_cast<int64_t>(bytes.size()) <= missing_bytes_,
                "{} bytes appended, but only {} are missing", bytes.size(), missing_bytes_);
  THIMBLE_TRY(Write(bytes));
  missing_bytes_ -= static_cast<int64_t>(bytes.size());
  return {};
}

Result<void> SafetensorsWriter::Finish() {
  THIMBLE_CHECK(missing_bytes_ == 0, "finished with {} bytes missing", missing_bytes_);
  const std::string seal = FormatSeal(checksum_.value());
  THIMBLE_TRY(file_.Overwrite(seal_offset_, std::as_bytes(std::span(seal))));
  return file_.Commit();
}

}  // namespace thimble
