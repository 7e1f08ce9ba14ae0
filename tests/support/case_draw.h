// CaseDraw: draws the random numbers of a test case. A case is a function of seed, op and number,
// so that each can be repeated alone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "thimble/base/philox.h"
#include "thimble/tensor/shape.h"

namespace thimble {

class CaseDraw {
 public:
  CaseDraw(uint64_t seed, std::string_view op, uint32_t number);

  uint32_t Word() { return source_.Words(number_, stream_, count_++)[0]; }
  // Both limits are included.
  int64_t Between(int64_t least, int64_t most);
  bool OneIn(uint32_t times) { return UniformBelow(Word(), times) == 0; }
  double Fraction() { return static_cast<double>(UniformFloat(Word())); }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return *std::next(values.begin(), Between(0, static_cast<int64_t>(values.size()) - 1));
  }

  // From 1 on: any size, or one next to a power of two, where vectors and tiles end.
  int64_t Size(int64_t most);
  // A shape with one to four dimensions: mostly few elements, sometimes several chunks of work,
  // rarely none. `least_rank` is the minimum number of dimensions.
  Shape AnyShape(size_t least_rank = 1);

 private:
  RandomSource source_;
  uint32_t number_;
  uint32_t stream_;  // by op
  uint64_t count_ = 0;
};

}  // namespace thimble
