#include "thimble/train/weights/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "thimble/base/quote_name.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/train/weights/safetensors_writer.h"

namespace thimble {
namespace {

constexpr std::string_view kBatchCounter = "num_batches_tracked";

// The bytes of output channel `channel`.
std::span<std::byte> ChannelBytes(const TensorView& view, const ChannelSlice& slice,
                                  int64_t channel) {
  return view.bytes().subspan(static_cast<size_t>(channel) * slice.size_bytes(),
                              slice.size_bytes());
}

// A channel of a packed tensor: what is not active is 0.
void ExpandChannel(const TensorView& view, size_t first, std::span<std::byte> to) {
  const TensorView stored = StoredNumbers(view);
  const size_t size = SizeBytes(view.dtype);
  std::ranges::fill(to, std::byte{0});
  size_t rank = view.packed.Rank(first);
  for (size_t i = 0; i < to.size() / size; ++i) {
    if (!view.packed.IsActive(first + i)) continue;
    std::ranges::copy(stored.bytes().subspan(rank++ * size, size), &to[i * size]);
  }
}

Result<void> AppendPacked(SafetensorsWriter& writer, const StoredTensor& tensor) {
  const ChannelSlice slice = SliceOf(tensor.view.shape, tensor.view.dtype);
  std::vector<std::byte> dense(slice.size_bytes());
  std::vector<std::byte> in_file(slice.size_bytes());
  const size_t elements = dense.size() / SizeBytes(tensor.view.dtype);
  for (int64_t channel = 0; channel < tensor.view.shape[0]; ++channel) {
    ExpandChannel(tensor.view, static_cast<size_t>(channel) * elements, dense);
    SliceToFile(slice, dense, in_file);
    THIMBLE_TRY(writer.Append(in_file));
  }
  return {};
}

// Reads what is active; numbers may have another type in the file.
Result<void> ReadPacked(const SafetensorsReader& file, const TensorEntry& entry,
                        const StoredTensor& tensor) {
  const TensorView& view = tensor.view;
  const ChannelSlice slice = SliceOf(view.shape, *entry.dtype);
  std::vector<std::byte> in_file(slice.size_bytes());
  std::vector<std::byte> dense(slice.size_bytes());
  std::vector<float> numbers(dense.size() / SizeBytes(*entry.dtype));
  const Numbers stored = NumbersOf(StoredNumbers(view));
  size_t rank = 0;
  for (int64_t channel = 0; channel < view.shape[0]; ++channel) {
    THIMBLE_TRY(file.Read(entry, channel * static_cast<int64_t>(in_file.size()), in_file));
    SliceFromFile(slice, in_file, dense);
    DecodeNumbers({dense.data(), *entry.dtype}, numbers.size(), numbers.data());
    size_t active = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t element = static_cast<size_t>(channel) * numbers.size() + i;
      if (view.packed.IsActive(element)) numbers[active++] = numbers[i];
    }
    EncodeNumbers(numbers.data(), active, stored + rank);
    rank += active;
  }
  return {};
}

Result<void> AppendTensor(SafetensorsWriter& writer, const StoredTensor& tensor,
                          std::vector<std::byte>& buffer) {
  if (tensor.view.is_packed()) return AppendPacked(writer, tensor);
  if (tensor.layout == FileLayout::kAsStored) return writer.Append(tensor.view.bytes());
  const ChannelSlice slice = SliceOf(tensor.view.shape, tensor.view.dtype);
  buffer.resize(slice.size_bytes());
  for (int64_t channel = 0; channel < tensor.view.shape[0]; ++channel) {
    SliceToFile(slice, ChannelBytes(tensor.view, slice, channel), buffer);
    THIMBLE_TRY(writer.Append(buffer));
  }
  return {};
}

Result<void> ReadTensor(const SafetensorsReader& file, const TensorEntry& entry,
                        const StoredTensor& tensor, std::vector<std::byte>& buffer) {
  if (tensor.view.is_packed()) return ReadPacked(file, entry, tensor);
  if (tensor.layout == FileLayout::kAsStored) return file.Read(entry, tensor.view.bytes());
  const ChannelSlice slice = SliceOf(tensor.view.shape, tensor.view.dtype);
  buffer.resize(slice.size_bytes());
  for (int64_t channel = 0; channel < tensor.view.shape[0]; ++channel) {
    THIMBLE_TRY(file.Read(entry, channel * static_cast<int64_t>(buffer.size()), buffer));
    SliceFromFile(slice, buffer, ChannelBytes(tensor.view, slice, channel));
  }
  return {};
}

// Numbers of another type than the file's; element i of the tensor is element i of `from`.
void Convert(const TensorView& from, const TensorView& to) {
  std::array<float, kNumbersPerPiece> numbers;
  const auto elements = static_cast<size_t>(to.shape.elements());
  for (size_t begin = 0; begin < elements; begin += numbers.size()) {
    const size_t count = std::min(numbers.size(), elements - begin);
    DecodeNumbers(ConstNumbersOf(from) + begin, count, numbers.data());
    EncodeNumbers(numbers.data(), count, NumbersOf(to) + begin);
  }
}

// The same where the file has another type of numbers. Needs memory for one tensor of the file.
Result<void> ReadConverted(const SafetensorsReader& file, const TensorEntry& entry,
                           const StoredTensor& tensor, std::vector<std::byte>& buffer) {
  StoredTensor read = tensor;
  read.view.dtype = *entry.dtype;
  std::vector<std::byte> bytes(read.view.size_bytes());
  read.view.data = bytes.data();
  THIMBLE_TRY(ReadTensor(file, entry, read, buffer));
  Convert(read.view, tensor.view);
  return {};
}

// How a tensor stands in a file. Files have no type for blocks of 8-bit numbers: those are bytes.
TensorSpec SpecOf(const StoredTensor& tensor) {
  const TensorView& view = tensor.view;
  if (view.dtype == DType::kQ8) {
    return {tensor.name, DType::kU8, Shape{static_cast<int64_t>(view.size_bytes())}};
  }
  return {tensor.name, view.dtype, FileShape(view.shape, tensor.layout)};
}

bool CanConvert(const TensorEntry& entry, DType to) {
  return entry.dtype && IsNumber(*entry.dtype) && IsNumber(to);
}

// The entry for `tensor`. kBadInput if it is missing or has a different type or shape.
Result<const TensorEntry*> Match(const SafetensorsReader& file, const StoredTensor& tensor,
                                 LoadRule rule) {
  const auto [name, type, shape] = SpecOf(tensor);
  const TensorEntry* entry = file.Find(tensor.name);
  const std::string expected = fmt::format("expected tensor {} of {} {}", QuoteName(name),
                                           SafetensorsName(type), ToString(shape));
  if (entry == nullptr) {
    return BadInput(fmt::format("{}: {}, the file has no such tensor", file.path(), expected));
  }
  const bool converts = rule == LoadRule::kConvert && CanConvert(*entry, type);
  if ((entry->dtype != type && !converts) || entry->shape != shape) {
    return BadInput(fmt::format("{}: {}, the file has {} {}", file.path(), expected,
                                entry->dtype_name, ToString(entry->shape)));
  }
  return entry;
}

// kBadInput if a tensor of the file is neither in the list nor a batch counter.
Result<void> CheckNoExtra(const SafetensorsReader& file, std::span<const StoredTensor> tensors) {
  std::vector<std::string_view> names;
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  for (const TensorEntry& entry : file.tensors()) {
    const bool counter = entry.name.ends_with(kBatchCounter) && entry.dtype_name == "I64";
    if (counter || std::ranges::binary_search(names, std::string_view(entry.name))) continue;
    return BadInput(fmt::format("{}: has an unexpected tensor {} of {} {}", file.path(),
                                QuoteName(entry.name), entry.dtype_name, ToString(entry.shape)));
  }
  return {};
}

// Larger element types first, so that each tensor begins at a multiple of its element size.
std::vector<const StoredTensor*> InFileOrder(std::span<const StoredTensor> tensors) {
  std::vector<const StoredTensor*> ordered;
  for (const StoredTensor& tensor : tensors) ordered.push_back(&tensor);
  std::ranges::stable_sort(ordered, std::greater(), [](const StoredTensor* tensor) {
    return SizeBytes(SpecOf(*tensor).dtype);
  });
  return ordered;
}

}  // namespace

Result<void> SaveTensors(const std::string& path, std::span<const StoredTensor> tensors,
                         const TensorMetadata& metadata) {
  const std::vector<const StoredTensor*> ordered = InFileOrder(tensors);
  std::vector<TensorSpec> specs;
  for (const StoredTensor* tensor : ordered) specs.push_back(SpecOf(*tensor));
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                           SafetensorsWriter::Create(path, specs, metadata));
  std::vector<std::byte> buffer;
  for (const StoredTensor* tensor : ordered) THIMBLE_TRY(AppendTensor(writer, *tensor, buffer));
  return writer.Finish();
}

Result<void> LoadTensors(const SafetensorsReader& file, std::span<const StoredTensor> tensors,
                         LoadRule rule) {
  std::vector<const TensorEntry*> entries;
  for (const StoredTensor& tensor : tensors) {
    THIMBLE_ASSIGN_OR_RETURN(const TensorEntry* entry, Match(file, tensor, rule));
    entries.push_back(entry);
  }
  if (rule != LoadRule::kAllowExtra) THIMBLE_TRY(CheckNoExtra(file, tensors));
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool same = entries[i]->dtype == SpecOf(tensors[i]).dtype || tensors[i].view.is_packed();
    THIMBLE_TRY(same ? ReadTensor(file, *entries[i], tensors[i], buffer)
                     : ReadConverted(file, *entries[i], tensors[i], buffer));
  }
  return {};
}

Result<void> LoadTensors(const std::string& path, std::span<const StoredTensor> tensors,
                         LoadRule rule) {
  THIMBLE_ASSIGN_OR_RETURN(const SafetensorsReader file, SafetensorsReader::Open(path));
  return LoadTensors(file, tensors, rule);
}

std::string FindNotFinite(std::span<const StoredTensor> tensors) {
  std::array<float, kNumbersPerPiece> copy;
  for (const StoredTensor& tensor : tensors) {
    if (!IsNumber(tensor.view.dtype) && tensor.view.dtype != DType::kQ8) continue;
    const TensorView stored = StoredNumbers(tensor.view);
    const auto elements = static_cast<size_t>(stored.shape.elements());
    for (size_t begin = 0; begin < elements; begin += copy.size()) {
      const size_t count = std::min(copy.size(), elements - begin);
      const float* numbers = ReadNumbers(ConstNumbersOf(stored) + begin, count, copy.data());
      const float* found =
          std::find_if_not(numbers, numbers + count, [](float x) { return std::isfinite(x); });
      if (found == numbers + count) continue;
      return fmt::format("tensor {} has {} at element {}", QuoteName(tensor.name),
                         std::isnan(*found) ? "nan" : "an infinite number",
                         begin + static_cast<size_t>(found - numbers));
    }
  }
  return {};
}

Result<void> LoadWeights(const std::string& path, std::span<const StoredTensor> tensors) {
  THIMBLE_TRY(LoadTensors(path, tensors, LoadRule::kConvert));
  const std::string found = FindNotFinite(tensors);
  if (found.empty()) return {};
  return BadInput(fmt::format("{}: {}: weights must be finite; these come from a run that diverged",
                              path, found));
}

}  // namespace thimble
