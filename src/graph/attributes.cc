#include "thimble/graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "thimble/base/check.h"

namespace thimble {
namespace {

template <class T>
const T& Get(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.Find(name);
  THIMBLE_CHECK(value != nullptr, "no attribute '{}'", name);
  const T* typed = std::get_if<T>(value);
  THIMBLE_CHECK(typed != nullptr, "attribute '{}' has another type", name);
  return *typed;
}

template <class Number>
std::string AttributeText(Number number) {
  return fmt::format("{}", number);
}

template <class Number>
std::string AttributeText(const std::vector<Number>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> entries) {
  for (const auto& [name, value] : entries) Set(name, value);
}

void Attributes::Set(std::string name, AttributeValue value) {
  auto place =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const auto& entry, const auto& key) { return entry.first < key; });
  if (place != entries_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    entries_.emplace(place, std::move(name), std::move(value));
  }
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Attributes::Int(std::string_view name) const { return Get<int64_t>(*this, name); }
double Attributes::Float(std::string_view name) const { return Get<double>(*this, name); }
const std::vector<int64_t>& Attributes::Ints(std::string_view name) const {
  return Get<std::vector<int64_t>>(*this, name);
}
const std::vector<double>& Attributes::Floats(std::string_view name) const {
  return Get<std::vector<double>>(*this, name);
}

std::string ToString(const Attributes& attributes) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : attributes.entries()) {
    parts.push_back(fmt::format("{}={}", name,
                                std::visit([](const auto& v) { return AttributeText(v); }, value)));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace thimble
