// Inputs for the op checks: completed attributes, inferred shapes, random inputs.
#pragma once

#include <vector>

#include "tests/support/op_check.h"
#include "tests/support/reference_interpreter.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// A case prepared to run. Aborts if the op is unknown; an invalid call gives a test failure and
// !valid().
struct PreparedCase {
  explicit PreparedCase(const OpCase& op_case);
  bool valid() const { return outputs.size() == op.outputs().size(); }
  OpCall call() const { return {op_case.inputs, outputs, attributes, input_types, output_types}; }

  const OpCase& op_case;
  const OpDef& op;
  Attributes attributes;
  std::vector<Shape> outputs;
  std::vector<DType> input_types;
  std::vector<DType> output_types;
};

// The number as a tensor of this type stores it.
double Stored(double number, DType type);

// The case's attributes with the op's defaults for the missing ones.
Attributes CompleteAttributes(const OpCase& op_case);

// Random inputs, exact in their types; numbers are multiplied by `scale`.
std::vector<ReferenceTensor<double>> RandomInputs(const PreparedCase& prepared, double scale);

// Standard normal numbers of one seed and stream. From one thread at a time, like all of these.
std::vector<double> RandomNormals(uint64_t seed, uint32_t stream, size_t count);

// Uniform numbers with mean 0 and variance 1.
std::vector<double> RandomUniforms(uint64_t seed, uint32_t stream, size_t count);

// The number of terms summed for one element of an output, from the op's cost or from the case.
double SumSize(const PreparedCase& prepared, size_t output);

}  // namespace thimble
