#include "thimble/train/weights/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "thimble/base/byte_size.h"
#include "thimble/base/json.h"
#include "thimble/base/quote_name.h"
#include "thimble/base/utf8.h"
#include "thimble/train/weights/safetensors_parser.h"

namespace thimble {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and are read and written without conversion");

// Checks that the tensors fill the data without overlap or gaps. Sorts them by position.
Result<void> CheckFilled(std::vector<TensorEntry>& tensors, int64_t header_bytes,
                         int64_t data_bytes) {
  const int64_t data_start = kSafetensorsPrefixBytes + header_bytes;
  std::ranges::stable_sort(tensors, [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t filled = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != filled) {
      return BadInput(fmt::format(
          "byte {}: expected tensor {} to begin here, at data offset {}; it "
          "{} at {}",
          data_start + filled, QuoteName(tensor.name), filled,
          tensor.begin < filled ? "overlaps the one before" : "leaves a hole", tensor.begin));
    }
    filled = tensor.end;
  }
  if (filled == data_bytes) return {};
  return BadInput(
      fmt::format("byte {}: expected the end of the file after the last tensor, found {} "
                  "more bytes",
                  data_start + filled, data_bytes - filled));
}

Result<void> CheckNamesDiffer(const std::vector<TensorEntry>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return BadInput(fmt::format("byte {}: expected different names in the header, found {} twice",
                              kSafetensorsPrefixBytes, QuoteName(*twice)));
}

// The text as a JSON string. kBadInput if it is not UTF-8.
Result<std::string> QuoteText(std::string_view text) {
  if (IsUtf8(text)) return JsonString(text);
  return BadInput(fmt::format("{} is not UTF-8 text and cannot be saved", QuoteName(text)));
}

Result<std::string> FormatMetadata(const TensorMetadata& metadata) {
  std::string text = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string json_key, QuoteText(key));
    THIMBLE_ASSIGN_OR_RETURN(const std::string json_value, QuoteText(value));
    if (text.back() != '{') text += ',';
    text += json_key;
    text += ':';
    text += json_value;
  }
  return text + "}";
}

// The ends of the tensors' data: tensor i is at [ends[i - 1], ends[i]).
Result<std::vector<int64_t>> DataEnds(std::span<const TensorSpec> specs) {
  std::vector<int64_t> ends;
  std::optional<int64_t> total = 0;
  for (const TensorSpec& spec : specs) {
    std::optional<int64_t> bytes = spec.shape.CheckedElements();
    if (bytes) bytes = CheckedMultiply(*bytes, static_cast<int64_t>(SizeBytes(spec.dtype)));
    total = bytes ? CheckedAdd(*total, *bytes) : std::nullopt;
    if (!total)
      return BadInput(fmt::format("tensor {} is too large to save", QuoteName(spec.name)));
    ends.push_back(*total);
  }
  return ends;
}

Result<void> CheckSpecNames(std::span<const TensorSpec> specs) {
  std::set<std::string_view> names = {"__metadata__"};
  for (const TensorSpec& spec : specs) {
    if (!names.insert(spec.name).second) {
      return BadInput(
          fmt::format("tensor name {} is used twice or reserved", QuoteName(spec.name)));
    }
  }
  return {};
}

}  // namespace

size_t FindSafetensorsSeal(std::string_view header) {
  const std::string member = fmt::format("\"{}\":\"", kChecksumKey);
  const size_t found = header.find(member);
  return found == std::string_view::npos ? found : found + member.size();
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text, int64_t data_bytes) {
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsJson(text, data_bytes));
  THIMBLE_TRY(CheckNamesDiffer(header.tensors));
  THIMBLE_TRY(CheckFilled(header.tensors, static_cast<int64_t>(text.size()), data_bytes));
  return header;
}

Result<std::string> FormatSafetensorsHeader(std::span<const TensorSpec> specs,
                                            const TensorMetadata& metadata) {
  THIMBLE_TRY(CheckSpecNames(specs));
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, DataEnds(specs));
  std::string text(kSafetensorsPrefixBytes, '\0');
  text += '{';
  if (!metadata.empty()) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string member, FormatMetadata(metadata));
    text += member;
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string name, QuoteText(specs[i].name));
    if (text.back() != '{') text += ',';
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name,
                        SafetensorsName(specs[i].dtype), fmt::join(specs[i].shape.dims(), ","),
                        i == 0 ? 0 : ends[i - 1], ends[i]);
  }
  text += '}';
  text.resize(RoundUp(text.size(), 8), ' ');
  const uint64_t header_bytes = text.size() - kSafetensorsPrefixBytes;
  if (header_bytes > kSafetensorsMaxHeaderBytes) {
    return BadInput(fmt::format("names and metadata take {} bytes; the format allows {}",
                                header_bytes, kSafetensorsMaxHeaderBytes));
  }
  std::memcpy(text.data(), &header_bytes, sizeof(header_bytes));
  return text;
}

std::string_view SafetensorsName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kU8:
      return "U8";
    case DType::kI32:
      return "I32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kQ8:
      break;  // stored as bytes (state_file.cc)
  }
  return "?";
}

}  // namespace thimble
