#include "thimble/tensor/tensor_view.h"

#include <fmt/format.h>

#include "thimble/base/check.h"

namespace thimble {

void FailForOtherType(DType stored, DType asked_for) {
  CheckFailed(
      __FILE__, __LINE__, "stored == asked_for",
      fmt::format("a tensor of {} was accessed as one of {}", Name(stored), Name(asked_for)));
}

}  // namespace thimble
