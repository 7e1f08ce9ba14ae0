// Json: a JSON value, to build and look at. The library that parses and quotes stays behind
// json.cc: its header takes seconds to compile, and nearly every folder reads or writes some JSON.
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

  // Each requires a value of its kind. What comes from a file is asked first; json_member.h does
  // it.
  bool boolean() const;
  const std::string& text() const;
  double number() const;
  // An integer whose type holds it: nothing where T cannot.
  template <std::integral T>
  std::optional<T> integer() const;
  // By the type that is wanted.
  template <class T>
  T get() const;

  // Elements of an array, members of an object; null is an empty one of either.
  size_t size() const;
  bool empty() const { return size() == 0; }
  // Null becomes an array or an object. Adding requires it or that kind; a member that is there is
  // found, not added.
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
  // Null where this is no object or has no such member.
  const Json* Find(std::string_view member) const;
  bool contains(std::string_view member) const { return Find(member) != nullptr; }

  // The elements of an array; of anything else, none.
  Json* begin();
  Json* end();
  const Json* begin() const;
  const Json* end() const;
  // The members of an object; of anything else, none.
  const Object& members() const;

  // As text: on one line, or with so many spaces for each level. What is not UTF-8 is replaced;
  // numbers that are not finite become null.
  std::string Dump(int indent = -1) const;

  // Numbers of any kind are compared by value.
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
  // Requires an array that has this one.
  Array& elements(size_t with_index);
  const Array& elements(size_t with_index) const;
  void Append(std::string& text, int indent, int depth) const;

  // Integers are uint64_t only where int64_t cannot hold them.
  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string name;
  Json value;
};

// A text in JSON's quotes, what is not UTF-8 in it replaced.
std::string JsonString(std::string_view text);
// The same with nothing but ASCII.
std::string AsciiJsonString(std::string_view text);

// Distrusts the text: kBadInput for what is not JSON, for numbers beyond a double's range, and for
// brackets nested deeper than in any file of ours (a file of nothing else would take a hundred
// times its size).
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
    THIMBLE_CHECK(value.has_value(), "no integer of this size: {}", Dump());
    return *value;
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(number());
  } else {
    return T(text());
  }
}

}  // namespace thimble
