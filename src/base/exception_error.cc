#include "thimble/base/exception_error.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace thimble {

Error ErrorOf(const std::exception& exception) {
  if (dynamic_cast<const std::system_error*>(&exception) != nullptr) {
    return Failed(fmt::format("the operating system refused: {}", exception.what()));
  }
  if (dynamic_cast<const std::length_error*>(&exception) != nullptr) {
    return Failed("a size is larger than any machine's memory; try a smaller batch or model");
  }
  return Failed(fmt::format("unexpected error: {}; this is a defect in Thimble, please report it",
                            exception.what()));
}

}  // namespace thimble
