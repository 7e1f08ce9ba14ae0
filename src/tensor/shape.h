// Shape: the sizes of a tensor's dimensions, outermost first. At most kMaxRank of them; a value
// type without heap memory. A dimension may be zero; a shape of rank 0 has one element.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace thimble {

class Shape {
 public:
  static constexpr size_t kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Requires at most kMaxRank dimensions, none negative.
  explicit Shape(std::span<const int64_t> dims);

  size_t rank() const { return rank_; }
  int64_t operator[](size_t axis) const { return dims_[axis]; }
  std::span<const int64_t> dims() const { return {dims_.data(), rank_}; }

  // Product of all dimensions. Requires that it fits an int64_t; CheckedElements checks.
  int64_t elements() const;
  std::optional<int64_t> CheckedElements() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
};

// "(100, 32, 32, 3)"
std::string ToString(const Shape& shape);

}  // namespace thimble
