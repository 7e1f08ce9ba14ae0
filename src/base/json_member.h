// Members of JSON objects that come from files, taken over without trust. For sources only: users
// need not have the library.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace thimble {

// Each says whether the JSON is what the member wants and, if it is, takes it over.
inline bool FromJson(const nlohmann::ordered_json& json, std::string& text) {
  if (!json.is_string()) return false;
  text = json.get<std::string>();
  return true;
}
inline bool FromJson(const nlohmann::ordered_json& json, bool& flag) {
  if (!json.is_boolean()) return false;
  flag = json.get<bool>();
  return true;
}
inline bool FromJson(const nlohmann::ordered_json& json, double& number) {
  if (!json.is_number()) return false;
  number = json.get<double>();
  return true;
}
// null where it is not known.
inline bool FromJson(const nlohmann::ordered_json& json, std::optional<double>& number) {
  number.reset();
  return json.is_null() || FromJson(json, number.emplace());
}
// Whole numbers that the type can hold.
template <std::integral T>
bool FromJson(const nlohmann::ordered_json& json, T& number) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned()) {
    if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
  } else if (std::unsigned_integral<T> ||
             json.get<int64_t>() < static_cast<int64_t>(std::numeric_limits<T>::min())) {
    return false;
  }
  number = json.get<T>();
  return true;
}

// The other way.
template <class T>
nlohmann::ordered_json ToJson(const T& member) {
  return member;
}
inline nlohmann::ordered_json ToJson(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

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
