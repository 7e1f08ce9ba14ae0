// Members of JSON objects that come from files, taken over without trust.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "thimble/base/json.h"

namespace thimble {

// Each says whether the JSON is what the member wants and, if it is, takes it over.
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
// null where it is not known.
inline bool FromJson(const Json& json, std::optional<double>& number) {
  number.reset();
  return json.is_null() || FromJson(json, number.emplace());
}
// Whole numbers that the type can hold.
template <std::integral T>
bool FromJson(const Json& json, T& number) {
  const std::optional<T> value = json.integer<T>();
  if (value) number = *value;
  return value.has_value();
}

// The other way.
template <class T>
Json ToJson(const T& member) {
  return member;
}
inline Json ToJson(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

// What each wants, for messages.
inline const char* ExpectedOf(const std::string&) { return "a text"; }
inline const char* ExpectedOf(const bool&) { return "true or false"; }
inline const char* ExpectedOf(const double&) { return "a number"; }
inline const char* ExpectedOf(const std::optional<double>&) { return "a number or null"; }
template <std::integral T>
const char* ExpectedOf(const T&) {
  return std::unsigned_integral<T> ? "a whole number, 0 or more" : "a whole number";
}

}  // namespace thimble
