// Tests of every op by its name.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "thimble/ops/builtin_ops.h"

namespace thimble {

inline std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const OpDef& op : BuiltinOps().ops()) names.push_back(op.name());
  return names;
}

inline std::string OpName(const testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace thimble
