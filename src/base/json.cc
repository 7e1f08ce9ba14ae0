#include "thimble/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

namespace thimble {
namespace {

using Library = nlohmann::json;

std::string Quote(std::string_view text, bool ascii) {
  return Library(text).dump(-1, ' ', ascii, Library::error_handler_t::replace);
}

// Limits nesting: Thimble's own files are nearly flat.
Result<void> CheckNesting(std::string_view text) {
  constexpr int kMostNested = 16;
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;  // skip the escaped character, which may be a quote
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMostNested) {
        return BadInput(
            fmt::format("byte {}: expected at most {} nested brackets", at, kMostNested));
      }
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return {};
}

// Receives the events of the library's parser and builds a value from them.
class Builder final : public nlohmann::json_sax<Library> {
 public:
  Json root;
  std::string problem;

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(int64_t value) override { return Put(value); }
  bool number_unsigned(uint64_t value) override { return Put(value); }
  bool number_float(double value, const std::string&) override { return Put(value); }
  bool string(std::string& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(Json::EmptyObject()); }
  bool start_array(size_t) override { return Open(Json::EmptyArray()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    member_ = std::move(name);
    return true;
  }
  bool parse_error(size_t at, const std::string&, const Library::exception& error) override {
    const bool torn = dynamic_cast<const Library::parse_error*>(&error) != nullptr;
    problem = torn ? fmt::format("is truncated or not JSON: byte {} is unexpected", at)
                   : "has a number that is too large";
    return false;
  }

 private:
  // Stores the next value in the open container; replaces a member of the same name.
  Json* Place(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent[parent.size() - 1];
    }
    return &(parent[member_] = std::move(value));
  }
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  // (The parent does not grow while a child is open, so pointers stay valid.)
  bool Open(Json value) {
    open_.push_back(Place(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  std::vector<Json*> open_;
  std::string member_;
};

void NewLine(std::string& text, int indent, int depth) {
  if (indent < 0) return;
  text += '\n';
  text.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
}

}  // namespace

Json::Json() noexcept : value_(nullptr) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(Array elements) : value_(std::move(elements)) {}
Json::Json(std::initializer_list<Member> members) : value_(Object(members)) {}
Json::Json(FromBoolean, bool value) : value_(value) {}
Json::Json(FromNumber, double value) : value_(value) {}
Json::Json(FromInteger, uint64_t bits, bool negative) : value_(static_cast<int64_t>(bits)) {
  if (!negative && bits > static_cast<uint64_t>(INT64_MAX)) value_ = bits;
}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_integer() const {
  return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_);
}
bool Json::is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<Array>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

bool Json::boolean() const {
  THIMBLE_CHECK(is_boolean(), "expected a boolean, got {}", Dump());
  return std::get<bool>(value_);
}

const std::string& Json::text() const {
  THIMBLE_CHECK(is_string(), "expected a string, got {}", Dump());
  return std::get<std::string>(value_);
}

double Json::number() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  THIMBLE_CHECK(is_number(), "expected a number, got {}", Dump());
  return std::get<double>(value_);
}

size_t Json::size() const {
  if (const auto* elements = std::get_if<Array>(&value_)) return elements->size();
  if (const auto* members = std::get_if<Object>(&value_)) return members->size();
  THIMBLE_CHECK(is_null(), "expected an array or object, got {}", Dump());
  return 0;
}

void Json::push_back(Json element) {
  if (is_null()) value_ = Array();
  THIMBLE_CHECK(is_array(), "expected an array, got {}", Dump());
  std::get<Array>(value_).push_back(std::move(element));
}

Json& Json::operator[](std::string_view member) {
  if (is_null()) value_ = Object();
  THIMBLE_CHECK(is_object(), "expected an object with a member '{}', got {}", member, Dump());
  Object& members = std::get<Object>(value_);
  const auto found = std::ranges::find(members, member, &Member::name);
  if (found != members.end()) return found->value;
  return members.emplace_back(Member{std::string(member), Json()}).value;
}

void Json::erase(std::string_view member) {
  if (!is_object()) return;
  std::erase_if(std::get<Object>(value_), [&](const Member& each) { return each.name == member; });
}

const Json& Json::operator[](std::string_view member) const {
  const Json* found = Find(member);
  THIMBLE_CHECK(found != nullptr, "no member '{}' in {}", member, Dump());
  return *found;
}

const Json::Array& Json::elements(size_t with_index) const {
  THIMBLE_CHECK(is_array() && with_index < size(), "no element {} in {}", with_index, Dump());
  return std::get<Array>(value_);
}
Json::Array& Json::elements(size_t with_index) {
  THIMBLE_CHECK(is_array() && with_index < size(), "no element {} in {}", with_index, Dump());
  return std::get<Array>(value_);
}

const Json* Json::Find(std::string_view member) const {
  for (const Member& each : members()) {
    if (each.name == member) return &each.value;
  }
  return nullptr;
}

const Json* Json::begin() const { return is_array() ? std::get<Array>(value_).data() : nullptr; }
const Json* Json::end() const { return is_array() ? begin() + size() : nullptr; }
Json* Json::begin() { return is_array() ? std::get<Array>(value_).data() : nullptr; }
Json* Json::end() { return is_array() ? begin() + size() : nullptr; }

const Json::Object& Json::members() const {
  static const Object none;
  return is_object() ? std::get<Object>(value_) : none;
}

std::string Json::Dump(int indent) const {
  std::string text;
  Append(text, indent, 0);
  return text;
}

void Json::Append(std::string& text, int indent, int depth) const {
  if (is_null()) {
    text += "null";
  } else if (is_boolean()) {
    text += std::get<bool>(value_) ? "true" : "false";
  } else if (const auto* integer = std::get_if<int64_t>(&value_)) {
    text += std::to_string(*integer);
  } else if (const auto* large = std::get_if<uint64_t>(&value_)) {
    text += std::to_string(*large);
  } else if (const auto* number = std::get_if<double>(&value_)) {
    text += Library(*number).dump();
  } else if (is_string()) {
    text += JsonString(std::get<std::string>(value_));
  } else {
    text += is_array() ? '[' : '{';
    std::string_view comma = "";
    const auto next = [&] {
      text += std::exchange(comma, ",");
      NewLine(text, indent, depth + 1);
    };
    for (const Json& element : *this) {
      next();
      element.Append(text, indent, depth + 1);
    }
    for (const Member& member : members()) {
      next();
      text += JsonString(member.name);
      text += indent < 0 ? ":" : ": ";
      member.value.Append(text, indent, depth + 1);
    }
    if (!empty()) NewLine(text, indent, depth);
    text += is_array() ? ']' : '}';
  }
}

bool operator==(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return (a <=> b) == 0;
  if (a.value_.index() != b.value_.index()) return false;
  if (a.is_object()) {
    return std::ranges::equal(a.members(), b.members(), [](const auto& x, const auto& y) {
      return x.name == y.name && x.value == y.value;
    });
  }
  if (a.is_array()) return std::ranges::equal(a, b);
  return a.Dump() == b.Dump();
}

std::partial_ordering operator<=>(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) {
    return a == b ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
  }
  const auto x = a.integer<int64_t>();
  const auto y = b.integer<int64_t>();
  if (x && y) return *x <=> *y;
  if (a.is_integer() && b.is_integer() && !x && !y)
    return *a.integer<uint64_t>() <=> *b.integer<uint64_t>();
  return a.number() <=> b.number();
}

std::ostream& operator<<(std::ostream& stream, const Json& json) { return stream << json.Dump(); }

std::string JsonString(std::string_view text) { return Quote(text, /*ascii=*/false); }
std::string AsciiJsonString(std::string_view text) { return Quote(text, /*ascii=*/true); }

Result<Json> ParseJson(std::string_view text) {
  THIMBLE_TRY(CheckNesting(text));
  Builder builder;
  if (!Library::sax_parse(text, &builder)) return BadInput(builder.problem);
  return std::move(builder.root);
}

}  // namespace thimble
