// Adam with decoupled weight decay (ops/adam_update): keeps two arrays, the first moment and the
// root of the second.
#pragma once

#include <memory>

#include "thimble/grad/optimizer.h"

namespace thimble {

// + name of the parameter.
inline constexpr const char* kFirstMomentPrefix = "adam_m.";
inline constexpr const char* kSecondRootPrefix = "adam_root.";

std::unique_ptr<const Optimizer> MakeAdam(const UpdateSpec& spec);

}  // namespace thimble
