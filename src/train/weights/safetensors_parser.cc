// Parses event by event instead of building a JSON tree: this needs little memory, rejects nesting
// at once, detects duplicate names and gives the position of each error.
#include "thimble/train/weights/safetensors_parser.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "thimble/base/byte_size.h"
#include "thimble/base/quote_name.h"

namespace thimble {
namespace {

using JsonLibrary = nlohmann::json;

// Iterates over the text and stores in *reached how far the parser has read.
class TextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TextIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  TextIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator==(const TextIterator& a, const TextIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

struct FileType {
  std::string_view name;
  int64_t size_bytes;
  std::optional<DType> dtype;
};
// Includes types that Thimble does not read, so that their tensors are checked too.
constexpr std::array kFileTypes = {
    FileType{"F32", 4, DType::kF32},   FileType{"U8", 1, DType::kU8},
    FileType{"I32", 4, DType::kI32},   FileType{"BOOL", 1, std::nullopt},
    FileType{"I8", 1, std::nullopt},   FileType{"I16", 2, std::nullopt},
    FileType{"U16", 2, std::nullopt},  FileType{"F16", 2, DType::kF16},
    FileType{"BF16", 2, DType::kBF16}, FileType{"U32", 4, std::nullopt},
    FileType{"I64", 8, std::nullopt},  FileType{"U64", 8, std::nullopt},
    FileType{"F64", 8, std::nullopt},
};

const FileType* FindFileType(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

// nullopt on overflow.
std::optional<int64_t> ExpectedBytes(const Shape& shape, int64_t element_bytes) {
  const std::optional<int64_t> elements = shape.CheckedElements();
  return elements ? CheckedMultiply(*elements, element_bytes) : std::nullopt;
}

// Receives the events of the JSON parser. Each function returns whether to continue; after false,
// `problem` has the reason.
class HeaderHandler final : public nlohmann::json_sax<JsonLibrary> {
 public:
  HeaderHandler(const char* text, int64_t data_bytes)
      : reached(text), text_(text), data_bytes_(data_bytes) {}

  const char* reached;  // moved by TextIterator
  std::string problem;
  SafetensorsHeader header;

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("true or false"); }
  bool number_integer(int64_t) override { return Unexpected("a negative number"); }
  bool number_float(double, const std::string&) override {
    return Unexpected("a number that is not a 64-bit integer");
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kArray) return Unexpected("a number");
    if (value > INT64_MAX) return Unexpected("a number that is not a 64-bit integer");
    const size_t limit = member_ == "shape" ? Shape::kMaxRank : 2;
    if (count_ == limit) {
      return Fail(fmt::format("expected at most {} numbers in {} of tensor {}", limit, member_,
                              QuoteName(tensor_.name)));
    }
    numbers_[count_++] = static_cast<int64_t>(value);
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      header.metadata[member_] = std::move(value);
      return true;
    }
    if (place_ != Place::kTensor || member_ != "dtype") return Unexpected("a string");
    tensor_.dtype_name = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = member_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
      tensor_ = TensorEntry();
      tensor_.name = member_;
      has_dtype_ = has_shape_ = has_range_ = false;
    } else {
      return Unexpected("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    member_ = std::move(name);
    if (place_ == Place::kTensor) return TensorMember();
    if (place_ == Place::kMetadata && header.metadata.contains(member_)) return Twice();
    if (place_ == Place::kTop && member_ == "__metadata__" && std::exchange(has_metadata_, true)) {
      return Twice();
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !FinishTensor()) return false;
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || member_ == "dtype") return Unexpected("an array");
    place_ = Place::kArray;
    count_ = 0;
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    if (member_ == "shape") {
      tensor_.shape = Shape(std::span<const int64_t>(numbers_.data(), count_));
      return true;
    }
    if (count_ != 2) {
      return Fail(fmt::format("expected two numbers in data_offsets of tensor {}, found {}",
                              QuoteName(tensor_.name), count_));
    }
    tensor_.begin = numbers_[0];
    tensor_.end = numbers_[1];
    return true;
  }

  bool parse_error(size_t, const std::string&, const JsonLibrary::exception&) override {
    return Fail("expected JSON, found something else");
  }

 private:
  // The parser's position in the header; nesting is never deeper than this.
  enum class Place { kStart, kTop, kMetadata, kTensor, kArray, kEnd };

  bool Fail(std::string_view what) {
    problem = fmt::format("byte {}: {}", kSafetensorsPrefixBytes + (reached - text_), what);
    return false;
  }

  bool Unexpected(std::string_view found) {
    return Fail(fmt::format("expected {}, found {}", Expected(), found));
  }

  bool Twice() { return Fail(fmt::format("found {} twice", QuoteName(member_))); }

  std::string Expected() const {
    switch (place_) {
      case Place::kTop:
        return fmt::format("an object that describes {}", QuoteName(member_));
      case Place::kMetadata:
        return fmt::format("a string for metadata {}", QuoteName(member_));
      case Place::kTensor:
        return fmt::format("{} for {} of tensor {}", member_ == "dtype" ? "a string" : "an array",
                           member_, QuoteName(tensor_.name));
      case Place::kArray:
        return fmt::format("a number from 0 to 2^63 - 1 in {} of tensor {}", member_,
                           QuoteName(tensor_.name));
      case Place::kStart:
      case Place::kEnd:
        break;
    }
    return "one object with a member per tensor";
  }

  bool TensorMember() {
    bool* seen = member_ == "dtype"          ? &has_dtype_
                 : member_ == "shape"        ? &has_shape_
                 : member_ == "data_offsets" ? &has_range_
                                             : nullptr;
    if (seen == nullptr) {
      return Fail(fmt::format("expected dtype, shape or data_offsets in tensor {}, found {}",
                              QuoteName(tensor_.name), QuoteName(member_)));
    }
    return std::exchange(*seen, true) ? Twice() : true;
  }

  bool FinishTensor() {
    const std::string name = QuoteName(tensor_.name);
    if (!has_dtype_ || !has_shape_ || !has_range_) {
      return Fail(fmt::format("expected dtype, shape and data_offsets in tensor {}", name));
    }
    if (tensor_.begin > tensor_.end || tensor_.end > data_bytes_) {
      return Fail(
          fmt::format("expected data_offsets of tensor {} within the {} bytes of data, found "
                      "[{}, {}]",
                      name, data_bytes_, tensor_.begin, tensor_.end));
    }
    if (const FileType* type = FindFileType(tensor_.dtype_name); type != nullptr) {
      tensor_.dtype = type->dtype;
      const std::optional<int64_t> bytes = ExpectedBytes(tensor_.shape, type->size_bytes);
      if (bytes != tensor_.end - tensor_.begin) {
        return Fail(fmt::format("expected {} bytes for tensor {} of {} {}, found {}",
                                bytes ? std::to_string(*bytes) : "fewer than 2^63", name,
                                type->name, ToString(tensor_.shape), tensor_.end - tensor_.begin));
      }
    }
    header.tensors.push_back(std::move(tensor_));
    return true;
  }

  const char* text_;
  int64_t data_bytes_;
  Place place_ = Place::kStart;
  std::string member_;  // the latest key
  TensorEntry tensor_;  // the one being read
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_range_ = false;
  std::array<int64_t, Shape::kMaxRank> numbers_{};
  size_t count_ = 0;
};

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsJson(std::string_view text, int64_t data_bytes) {
  const char* begin = text.data();
  // The JSON parser would treat a zero byte as the end and skip a byte order mark.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return BadInput(fmt::format("byte {}: expected JSON, found a zero byte",
                                kSafetensorsPrefixBytes + static_cast<int64_t>(zero)));
  }
  if (!text.starts_with('{')) {
    return BadInput(fmt::format("byte {}: expected '{{', the beginning of the JSON header",
                                kSafetensorsPrefixBytes));
  }
  HeaderHandler handler(begin, data_bytes);
  if (!JsonLibrary::sax_parse(TextIterator(begin, &handler.reached),
                              TextIterator(begin + text.size(), &handler.reached), &handler)) {
    return BadInput(handler.problem);
  }
  return std::move(handler.header);
}

}  // namespace thimble
