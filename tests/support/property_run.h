// Which random cases a property test runs. By default always the same ones; environment variables
// select others:
//   THIMBLE_PROPERTY_SEED=7     other cases
//   THIMBLE_PROPERTY_CASES=500  this many for each op (times the op's weight)
//   THIMBLE_PROPERTY_CASE=41    only this one
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/function_ref.h"

namespace thimble {

struct PropertyRun {
  uint64_t seed = 1;
  uint32_t cases = 0;
  bool alone = false;  // only case `first`
  uint32_t first = 0;

  // `cases` is the default number. Aborts if a variable is not a number.
  static PropertyRun FromEnvironment(uint32_t cases);

  // Calls body(number) for each case of `op`, which has `weight` times as many as others. Failures
  // and crashes print the case and how to run it alone.
  void ForEachCase(const std::string& op, uint32_t weight,
                   FunctionRef<void(uint32_t number)> body) const;
};

}  // namespace thimble
