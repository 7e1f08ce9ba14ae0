#include "thimble/base/result.h"

#include "thimble/base/check.h"

namespace thimble::internal {

void NoValue(const Error& error) {
  CheckFailed(__FILE__, __LINE__, "ok()", "value() of a failed Result: " + error.message);
}

void NoError() { CheckFailed(__FILE__, __LINE__, "!ok()", "error() of a Result that succeeded"); }

}  // namespace thimble::internal
