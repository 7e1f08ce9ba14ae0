#include "thimble/train/task/task.h"

#include <fmt/format.h>

namespace thimble {

Result<DataPart> ParseDataPart(std::string_view name) {
  if (name == "train") return DataPart::kTrain;
  if (name == "validation") return DataPart::kValidation;
  if (name == "test") return DataPart::kTest;
  return BadInput(fmt::format("part '{}': expected train, validation or test", name));
}

}  // namespace thimble
