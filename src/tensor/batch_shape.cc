#include "thimble/tensor/batch_shape.h"

#include <fmt/format.h>

namespace thimble {

std::string ToString(const BatchShape& shape) {
  if (shape.source_length == 0 && shape.target_length == 0) {
    return fmt::format("{}", shape.samples);
  }
  return fmt::format("{}x{}+{}", shape.samples, shape.source_length, shape.target_length);
}

}  // namespace thimble
