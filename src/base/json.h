// Json: a JSON value, to build and to read. Only json.cc includes the JSON library: its header
// takes seconds to compile, and nearly every folder reads or writes some JSON.
//
//   Json json{{"step", 7}, {"loss", 0.25}};
//   json["tags"].push_back("first");
//   json.Dump();  // {"step":7,"loss":0.25,"tags":["first"]}
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/base/result.h"

namespace thimble {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // in the order in which they were added

  Json() noexcept;  // null
  Json(std::nullptr_t) noexcept : Json() {}
  template <std::same_as<bool> T>
  Json(T value) : Json(FromBoolean{}, value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value)
      : Json(FromInteger{}, static_cast<uint64_t>(value), value < T{}) {}
  template <std::floating_point T>
  Json(T value) : Json(FromNumber{}, static_cast<double>(value)) {}
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  template <class List>
  requires(!std::convertible_to<List, std::string_view> && requires { typename List::value_type; })
      Json(const List& elements)
      : Json(Array(elements.begin(), elements.end())) {}
  Json(Array elements);
  template <class T>
  Json(const std::map<std::string, T>& members);
  Json(std::initializer_list<Member> members);
  static Json EmptyArray() { return Json(Array()); }
  static Json EmptyObject() { return Json(std::initializer_list<Member>()); }

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  bool is_null() const;
  bool is_boolean() const;
  bool is_integer() const;
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  // Each requires a value of its kind (checked). For values from files use json_member.h, which
  // tests the kind first.
  bool boolean() const;
  const std::string& text() const;
  double number() const;
  // The integer as a T; nullopt if it is not an integer or does not fit.
  template <std::integral T>
  std::optional<T> integer() const;
  // The value as a T; requires that kind.
  template <class T>
  T get() const;

  // Number of elements of an array or members of an object; 0 for null.
  size_t size() const;
  bool empty() const { return size() == 0; }
  // Require null, which becomes an array or object, or a value of that kind. [] adds the member
  // only if it is missing.
  void push_back(Json element);
  Json& operator[](std::string_view member);
  Json& operator[](const char* member) { return (*this)[std::string_view(member)]; }
  void erase(std::string_view member);
  // Requires that they exist.
  template <std::integral T>
  Json& operator[](T index) {
    return elements(static_cast<size_t>(index))[static_cast<size_t>(index)];
  }
  template <std::integral T>
  const Json& operator[](T index) const {
    return elements(static_cast<size_t>(index))[static_cast<size_t>(index)];
  }
  const Json& operator[](std::string_view member) const;
  const Json& operator[](const char* member) const { return (*this)[std::string_view(member)]; }
  // nullptr if this is not an object or has no such member.
  const Json* Find(std::string_view member) const;
  bool contains(std::string_view member) const { return Find(member) != nullptr; }

  // The elements of an array; an empty range for any other kind.
  Json* begin();
  Json* end();
  const Json* begin() const;
  const Json* end() const;
  // The members of an object; empty for any other kind.
  const Object& members() const;

  // As text: on one line, or indented by `indent` spaces per level. Invalid UTF-8 is replaced;
  // non-finite numbers become null.
  std::string Dump(int indent = -1) const;

  // Integers and doubles are compared by value.
  friend bool operator==(const Json& a, const Json& b);
  friend std::partial_ordering operator<=>(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& stream, const Json& json);

 private:
  struct FromBoolean {};
  struct FromInteger {};
  struct FromNumber {};
  Json(FromBoolean, bool value);
  Json(FromInteger, uint64_t bits, bool negative);
  Json(FromNumber, double value);
  // Requires an array with an element at this index.
  Array& elements(size_t with_index);
  const Array& elements(size_t with_index) const;
  void Append(std::string& text, int indent, int depth) const;

  // Integers are stored as uint64_t only if int64_t cannot hold them.
  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string name;
  Json value;
};

// The text as a quoted JSON string; invalid UTF-8 is replaced.
std::string JsonString(std::string_view text);
// The same, in ASCII only.
std::string AsciiJsonString(std::string_view text);

// Parses untrusted text: kBadInput if it is not JSON, has numbers beyond a double's range, or nests
// brackets deeper than any of Thimble's files (a file of brackets alone would take a hundred times
// its size in memory).
Result<Json> ParseJson(std::string_view text);

template <class T>
Json::Json(const std::map<std::string, T>& members) : Json(EmptyObject()) {
  for (const auto& [name, value] : members) (*this)[name] = value;
}

template <std::integral T>
std::optional<T> Json::integer() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) {
    if (std::in_range<T>(*value)) return static_cast<T>(*value);
  } else if (const auto* large = std::get_if<uint64_t>(&value_)) {
    if (std::in_range<T>(*large)) return static_cast<T>(*large);
  }
  return std::nullopt;
}

template <class T>
T Json::get() const {
  if constexpr (std::same_as<T, bool>) {
    return boolean();
  } else if constexpr (std::integral<T>) {
    const std::optional<T> value = integer<T>();
    THIMBLE_CHECK(value.has_value(), "not an integer that fits the type: {}", Dump());
    return *value;
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(number());
  } else {
    return T(text());
  }
}

}  // namespace thimble
