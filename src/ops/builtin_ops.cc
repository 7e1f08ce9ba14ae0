#include "thimble/ops/builtin_ops.h"

namespace thimble {

#define OP(name) OpDef Make_##name();
#include "thimble/ops/op_list.inc"
#undef OP

const OpRegistry& BuiltinOps() {
  static const OpRegistry* registry = [] {
    auto* ops = new OpRegistry;
#define OP(name) ops->Add(Make_##name());
#include "thimble/ops/op_list.inc"
#undef OP
    return ops;
  }();
  return *registry;
}

}  // namespace thimble
