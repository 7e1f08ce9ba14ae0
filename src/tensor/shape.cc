#include "thimble/tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "thimble/base/byte_size.h"
#include "thimble/base/check.h"

namespace thimble {

Shape::Shape(std::span<const int64_t> dims) : rank_(dims.size()) {
  THIMBLE_CHECK(dims.size() <= kMaxRank, "rank {} exceeds the maximum of {}", dims.size(),
                kMaxRank);
  for (size_t axis = 0; axis < rank_; ++axis) {
    THIMBLE_CHECK(dims[axis] >= 0, "dimension {} is negative: {}", axis, dims[axis]);
    dims_[axis] = dims[axis];
  }
}

std::optional<int64_t> Shape::CheckedElements() const {
  std::optional<int64_t> product = 1;
  for (int64_t dim : dims()) {
    product = CheckedMultiply(*product, dim);
    if (!product) return std::nullopt;
  }
  return product;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims()) product *= dim;
  return product;
}

std::string ToString(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape.dims(), ", "));
}

}  // namespace thimble
