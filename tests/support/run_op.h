// Runs one op on given numbers with its best CPU kernel, for tests of exact values.
#pragma once

#include <vector>

#include "tests/support/op_check.h"

namespace thimble {

// Data of one input or output: floats, or integers if the op's port has an integer type.
struct OpData {
  std::vector<float> floats;
  std::vector<int> integers;
};

// `inputs` has one entry for each shape in `op_case.inputs`. `kernel` is an index into the op's
// kernels for the device, best first.
std::vector<OpData> RunOp(const OpCase& op_case, const std::vector<OpData>& inputs,
                          size_t kernel = 0, DeviceKind device = DeviceKind::kCpu);

// The results of every kernel of the op, best first, including CUDA if there is a device; a NaN or
// an infinity must be preserved in all of them.
std::vector<std::vector<OpData>> RunAllKernels(const OpCase& op_case,
                                               const std::vector<OpData>& inputs);

}  // namespace thimble
