// What the definitions of all ops of Adam share.
#pragma once

#include "thimble/graph/op_def.h"
#include "thimble/ops/adam_update/adam_update.h"

namespace thimble {

// Rejects values outside the ranges in which the formula is defined.
Result<void> CheckAdamSpec(const AdamSpec& spec);

// The attributes that all of them have, and that none has a gradient.
OpDef& AddAdamAttributes(OpDef& op);

}  // namespace thimble
