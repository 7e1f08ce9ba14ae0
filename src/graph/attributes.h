// Attributes: the named constants of a node (stride, padding, epsilon). A small sorted list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace thimble {

using AttributeValue = std::variant<int64_t, double, std::vector<int64_t>, std::vector<double>>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> entries);

  void Set(std::string name, AttributeValue value);
  const AttributeValue* Find(std::string_view name) const;  // nullptr if absent

  // The op's definition says which attributes a node has and their types; reading any other is a
  // programming error.
  int64_t Int(std::string_view name) const;
  double Float(std::string_view name) const;
  const std::vector<int64_t>& Ints(std::string_view name) const;
  const std::vector<double>& Floats(std::string_view name) const;

  const std::vector<std::pair<std::string, AttributeValue>>& entries() const { return entries_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<std::pair<std::string, AttributeValue>> entries_;  // sorted by name
};

// "stride=2 padding=1"
std::string ToString(const Attributes& attributes);

}  // namespace thimble
