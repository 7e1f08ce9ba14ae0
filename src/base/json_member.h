// Reads members of JSON objects that come from files; nothing about them is trusted.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "thimble/base/json.h"

namespace thimble {

// Each assigns the JSON value to its second argument and returns true, or returns false if the kind
// does not match.
inline bool FromJson(const Json& json, std::string& text) {
  if (!json.is_string()) return false;
  text = json.text();
  return true;
}
inline bool FromJson(const Json& json, bool& flag) {
  if (!json.is_boolean()) return false;
  flag = json.boolean();
  return true;
}
inline bool FromJson(const Json& json, double& number) {
  if (!json.is_number()) return false;
  number = json.number();
  return true;
}
// null becomes nullopt.
inline bool FromJson(const Json& json, std::optional<double>& number) {
  number.reset();
  return json.is_null() || FromJson(json, number.emplace());
}
// Integers that fit the type.
template <std::integral T>
bool FromJson(const Json& json, T& number) {
  const std::optional<T> value = json.integer<T>();
  if (value) number = *value;
  return value.has_value();
}

// The reverse of FromJson.
template <class T>
Json ToJson(const T& member) {
  return member;
}
inline Json ToJson(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

// The expected kind, for messages.
inline const char* ExpectedOf(const std::string&) { return "a string"; }
inline const char* ExpectedOf(const bool&) { return "true or false"; }
inline const char* ExpectedOf(const double&) { return "a number"; }
inline const char* ExpectedOf(const std::optional<double>&) { return "a number or null"; }
template <std::integral T>
const char* ExpectedOf(const T&) {
  return std::unsigned_integral<T> ? "a whole number, 0 or more" : "a whole number";
}

}  // namespace thimble
