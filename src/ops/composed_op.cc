#include "thimble/ops/composed_op.h"

namespace thimble {

void AddInput(OpDef& op, const OpPort& port, bool is_optional) {
  if (is_optional) {
    op.OptionalInput(port.name, port.dtype);
  } else if (port.may_be_q8) {
    op.StateInput(port.name);
  } else if (port.is_filter) {
    op.FilterInput(port.name);
  } else if (port.is_number) {
    op.Input(port.name);
  } else {
    op.Input(port.name, port.dtype);
  }
}

void AddOutput(OpDef& op, const OpPort& port) {
  if (port.may_be_q8) {
    op.StateOutput(port.name);
  } else if (port.is_number) {
    op.Output(port.name);
  } else {
    op.Output(port.name, port.dtype);
  }
}

void AddReuses(OpDef& op, const OpDef& from) {
  for (size_t o = 0; o < from.outputs().size(); ++o) {
    for (size_t i = 0; i < from.inputs().size(); ++i) {
      if (from.MayReuse(o, i)) {
        op.OutputMayReuse(from.outputs()[o].name, from.inputs()[i].name);
      }
    }
  }
}

void AddAttributes(OpDef& op, const OpDef& from) {
  for (const auto& [name, value] : from.default_attributes().entries()) op.Attribute(name, value);
}

}  // namespace thimble
