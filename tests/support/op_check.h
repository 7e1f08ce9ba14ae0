// Checks that hold for every op: each kernel against the scalar reference, gradient rules against
// the complex step. An op's test lists calls (shapes, attributes); these functions do the rest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/graph/attributes.h"
#include "thimble/graph/kernel.h"
#include "thimble/tensor/dtype.h"
#include "thimble/tensor/shape.h"

namespace thimble {

struct OpCase {
  std::string op = {};
  std::vector<Shape> inputs = {};
  Attributes attributes = {};  // missing ones have the op's defaults
  // Integer inputs (labels, pixels) are drawn below this.
  int integer_bound = 10;
  // The contents of inputs for which random ones would not be valid, such as patterns, by index.
  std::map<size_t, std::vector<double>> given_inputs = {};
  // Floating-point inputs with these indices are drawn from [0.5, 1.5] (variances, scales).
  std::vector<size_t> positive_inputs = {};
  // Inputs that the gradient rule treats as constants.
  std::vector<size_t> constant_inputs = {};
  // Added to the first input; the others stay standard normal.
  double first_input_offset = 0;
  // Numbers summed for one output, if the op's cost per output does not show it: sums that all
  // outputs share, such as a row's in softmax.
  double shared_sum_size = 1;
  // Size of numbers that are rounded and then cancel, if changing the inputs does not show it: 1 in
  // a probability of nearly 1 minus 1.
  double cancelled_size = 0;
  uint64_t seed = 1;
  // Types of the ports that accept any number, inputs first; repeated if there are more ports than
  // types. Empty: f32.
  std::vector<DType> number_types = {};
};

// "relu (3, 5) stride=1 seed 1", for failure messages.
std::string ToString(const OpCase& op_case);

// The default threads and scratch for checks of kernels.
inline const std::vector<KernelLimits> kUsualLimits = {
    {1, size_t{1} << 20}, {2, size_t{1} << 20}, {2, size_t{1} << 15}, {3, size_t{1} << 20}};

// Names of the kernels that accepted the call.
using CheckedKernels = std::vector<std::string_view>;

// For f32, each type of 16 bits that a kernel takes and a mix of them, if the case does not say
// which: runs every CPU kernel of the op on every SIMD target of the machine and within each of the
// limits: results must be within tolerance of the double-precision reference and the same bits for
// any number of threads and any limit on scratch. Outputs and scratch start as NaN, guard bytes
// around every buffer and inputs must not change, and outputs that may reuse an input must give the
// same bits in place, within the first and the last of the limits. (References use neither threads
// nor scratch: they run once, with the first limits.)
CheckedKernels CheckKernels(const OpCase& op_case,
                            const std::vector<KernelLimits>& limits = kUsualLimits);

// The same for the op's CUDA kernels: within tolerance, the same bits when recorded as a graph and
// in place, guards around every buffer. Requires a device.
CheckedKernels CheckCudaKernels(const OpCase& op_case);

// Compares the op's gradient rule (run with double references) with the complex step through the
// complex reference, for every floating-point input, with a random cotangent at the first output:
// along dense directions at input scales 0.1, 1 and 10, along single elements at scale 1.
void CheckGradient(const OpCase& op_case);

// The message of the op's shape rule for this call; a test failure if the rule accepts it.
std::string ShapeError(const OpCase& op_case);

}  // namespace thimble
