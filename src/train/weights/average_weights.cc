#include "thimble/train/weights/average_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/base/quote_name.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/train/weights/safetensors_reader.h"
#include "thimble/train/weights/safetensors_writer.h"

namespace thimble {
namespace {

using Readers = std::vector<SafetensorsReader>;

std::string Describe(const TensorEntry& entry) {
  return fmt::format("{} {}", entry.dtype_name, ToString(entry.shape));
}

// Tensors of `file` are those of `first`.
Result<void> CheckSameTensors(const SafetensorsReader& first, const SafetensorsReader& file) {
  for (const TensorEntry& expected : first.tensors()) {
    const TensorEntry* found = file.Find(expected.name);
    if (found != nullptr && found->dtype == expected.dtype && found->shape == expected.shape) {
      continue;
    }
    return BadInput(fmt::format(
        "{}: {} tensor {}; expected {}, as in {}", file.path(), found == nullptr ? "no" : "has",
        QuoteName(expected.name) + (found == nullptr ? "" : " of " + Describe(*found)),
        Describe(expected), first.path()));
  }
  if (file.tensors().size() == first.tensors().size()) return {};
  return BadInput(fmt::format("{}: has {} tensors, expected {}, as in {}", file.path(),
                              file.tensors().size(), first.tensors().size(), first.path()));
}

// What the average has: the tensors of the first file.
Result<std::vector<TensorSpec>> SpecsOf(const SafetensorsReader& first) {
  std::vector<TensorSpec> specs;
  for (const TensorEntry& entry : first.tensors()) {
    if (!entry.dtype || !IsNumber(*entry.dtype)) {
      return BadInput(fmt::format("{}: tensor {} of {} has no numbers to average", first.path(),
                                  QuoteName(entry.name), Describe(entry)));
    }
    specs.push_back({entry.name, *entry.dtype, entry.shape});
  }
  return specs;
}

// Numbers [begin, begin + means.size()) of a tensor.
Result<void> AveragePiece(const Readers& files, const TensorSpec& spec, int64_t begin,
                          std::span<float> means) {
  const auto size = static_cast<int64_t>(SizeBytes(spec.dtype));
  std::array<double, kNumbersPerPiece> sums{};
  std::array<float, kNumbersPerPiece> stored;  // has room for numbers of any type
  const auto bytes =
      std::as_writable_bytes(std::span(stored)).first(means.size() * static_cast<size_t>(size));
  for (const SafetensorsReader& file : files) {
    THIMBLE_TRY(file.Read(*file.Find(spec.name), begin * size, bytes));
    DecodeNumbers({bytes.data(), spec.dtype}, means.size(), means.data());
    for (size_t i = 0; i < means.size(); ++i) sums[i] += means[i];
  }
  for (size_t i = 0; i < means.size(); ++i) {
    means[i] = static_cast<float>(sums[i] / static_cast<double>(files.size()));
  }
  return {};
}

Result<void> AppendAverage(const Readers& files, const TensorSpec& spec,
                           SafetensorsWriter& writer) {
  std::array<float, kNumbersPerPiece> means;
  std::array<float, kNumbersPerPiece> rounded;  // has room for numbers of any type
  const int64_t elements = spec.shape.elements();
  for (int64_t begin = 0; begin < elements; begin += std::ssize(means)) {
    const auto count = static_cast<size_t>(std::min(elements - begin, std::ssize(means)));
    THIMBLE_TRY(AveragePiece(files, spec, begin, std::span(means).first(count)));
    const auto bytes = std::as_writable_bytes(std::span(rounded));
    EncodeNumbers(means.data(), count, {bytes.data(), spec.dtype});
    THIMBLE_TRY(writer.Append(bytes.first(count * SizeBytes(spec.dtype))));
  }
  return {};
}

}  // namespace

Result<void> AverageWeights(std::span<const std::string> paths, const std::string& to,
                            const TensorMetadata& metadata) {
  THIMBLE_CHECK(!paths.empty(), "the average of no files");
  Readers files;
  for (const std::string& path : paths) {
    THIMBLE_ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(path));
    files.push_back(std::move(file));
    THIMBLE_TRY(CheckSameTensors(files.front(), files.back()));
  }
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<TensorSpec> specs, SpecsOf(files.front()));
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                           SafetensorsWriter::Create(to, specs, metadata));
  for (const TensorSpec& spec : specs) THIMBLE_TRY(AppendAverage(files, spec, writer));
  return writer.Finish();
}

}  // namespace thimble
