#include "tests/support/op_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "thimble/base/philox.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

bool Contains(const std::vector<size_t>& indices, size_t index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

// The random numbers of one tensor, by element.
class Draws {
 public:
  Draws(uint64_t seed, uint32_t stream) : source_(seed, RandomPurpose::kTest), stream_(stream) {}
  std::array<uint32_t, 4> Words(size_t element) const { return source_.Words(0, stream_, element); }

 private:
  RandomSource source_;
  uint32_t stream_;
};

// Streams of numbers of one seed. Each number depends only on seed, stream and element, and the
// same ones are asked for again and again: by the storage types of a case, by its scales, and by
// cases with the same seed.
class DrawnNumbers {
 public:
  // draw(words) makes a number.
  explicit DrawnNumbers(double (*draw)(const std::array<uint32_t, 4>& words)) : draw_(draw) {}

  std::vector<double> First(size_t count, uint64_t seed, uint32_t stream) {
    if (seed != seed_) streams_.clear();
    seed_ = seed;
    std::vector<double>& numbers = streams_[stream];
    const Draws draws(seed, stream);
    for (size_t i = numbers.size(); i < count; ++i) numbers.push_back(draw_(draws.Words(i)));
    return {numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  double (*draw_)(const std::array<uint32_t, 4>& words);
  uint64_t seed_ = 0;
  std::map<uint32_t, std::vector<double>> streams_;
};

// The types of the ports; `number_index` counts ports with numbers.
std::vector<DType> TypesOf(const std::vector<OpPort>& ports, const std::vector<DType>& number_types,
                           size_t& number_index) {
  std::vector<DType> types;
  for (const OpPort& port : ports) {
    const bool plain = !port.is_number || number_types.empty();
    types.push_back(plain ? port.dtype : number_types[number_index % number_types.size()]);
    number_index += port.is_number ? 1 : 0;
  }
  return types;
}

}  // namespace

double Stored(double number, DType type) {
  const auto rounded = static_cast<float>(number);
  if (type == DType::kF16) return ToFloat(ToF16(rounded));
  return type == DType::kBF16 ? ToFloat(ToBF16(rounded)) : rounded;
}

std::string ToString(const OpCase& op_case) {
  std::string shapes;
  for (const Shape& shape : op_case.inputs) shapes += fmt::format(" {}", ToString(shape));
  for (const DType type : op_case.number_types) shapes += fmt::format(" {}", Name(type));
  return fmt::format("{}{} {} seed {}", op_case.op, shapes, ToString(op_case.attributes),
                     op_case.seed);
}

Attributes CompleteAttributes(const OpCase& op_case) {
  Attributes complete = BuiltinOps().Get(op_case.op).default_attributes();
  for (const auto& [name, value] : op_case.attributes.entries()) {
    const AttributeValue* known = complete.Find(name);
    EXPECT_TRUE(known != nullptr && known->index() == value.index())
        << op_case.op << ": attribute " << name << " is unknown or of another type";
    complete.Set(name, value);
  }
  return complete;
}

PreparedCase::PreparedCase(const OpCase& the_case)
    : op_case(the_case),
      op(BuiltinOps().Get(the_case.op)),
      attributes(CompleteAttributes(the_case)) {
  if (!op.AcceptsInputs(op_case.inputs.size())) {
    ADD_FAILURE() << ToString(op_case) << ": expected " << op.inputs().size() << " inputs";
    return;
  }
  std::vector<OpPort> ports;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) ports.push_back(op.InputPort(i));
  size_t number_index = 0;
  input_types = TypesOf(ports, op_case.number_types, number_index);
  output_types = TypesOf(op.outputs(), op_case.number_types, number_index);
  auto shapes = op.InferShapes({op_case.inputs, {}, attributes});
  if (shapes.ok()) {
    outputs = *shapes;
  } else {
    ADD_FAILURE() << ToString(op_case) << ": " << shapes.error().message;
  }
}

namespace {

// An input whose contents the case has.
void SetGiven(const std::vector<double>& given, DType stored, ReferenceTensor<double>& input) {
  ASSERT_EQ(given.size(), std::max(input.numbers.size(), input.integers.size()));
  for (size_t k = 0; k < input.integers.size(); ++k) {
    input.integers[k] = static_cast<int32_t>(given[k]);
  }
  for (size_t k = 0; k < input.numbers.size(); ++k) input.numbers[k] = Stored(given[k], stored);
}

}  // namespace

std::vector<ReferenceTensor<double>> RandomInputs(const PreparedCase& prepared, double scale) {
  const OpCase& op_case = prepared.op_case;
  const uint32_t bound = static_cast<uint32_t>(op_case.integer_bound);
  std::vector<ReferenceTensor<double>> inputs(op_case.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = prepared.op.InputPort(i).dtype;
    inputs[i].Resize(op_case.inputs[i], dtype);
    const auto given = op_case.given_inputs.find(i);
    if (given != op_case.given_inputs.end()) {
      SetGiven(given->second, prepared.input_types[i], inputs[i]);
      continue;
    }
    const double offset = i == 0 ? op_case.first_input_offset : 0;
    const auto stream = static_cast<uint32_t>(i);
    const auto count = static_cast<size_t>(op_case.inputs[i].elements());
    const Draws draws(op_case.seed, stream);
    const auto integer = [&](size_t k) { return UniformBelow(draws.Words(k)[0], bound); };
    if (dtype == DType::kI32) {
      for (size_t k = 0; k < count; ++k) inputs[i].integers[k] = static_cast<int32_t>(integer(k));
    } else if (dtype == DType::kU8) {
      for (size_t k = 0; k < count; ++k) inputs[i].bytes[k] = static_cast<uint8_t>(integer(k));
    } else {
      const bool positive = Contains(op_case.positive_inputs, i);
      const auto numbers =
          positive ? std::vector<double>() : RandomNormals(op_case.seed, stream, count);
      for (size_t k = 0; k < count; ++k) {
        const double number = positive ? 0.5 + static_cast<double>(UniformFloat(draws.Words(k)[0]))
                                       : offset + numbers[k];
        inputs[i].numbers[k] = Stored(number * scale, prepared.input_types[i]);
      }
    }
  }
  return inputs;
}

std::vector<double> RandomNormals(uint64_t seed, uint32_t stream, size_t count) {
  static DrawnNumbers normals(+[](const std::array<uint32_t, 4>& words) {
    return static_cast<double>(NormalFloat(words[0], words[1]));
  });
  return normals.First(count, seed, stream);
}

std::vector<double> RandomUniforms(uint64_t seed, uint32_t stream, size_t count) {
  static DrawnNumbers uniforms(+[](const std::array<uint32_t, 4>& words) {
    return 2 * std::sqrt(3.0) * (static_cast<double>(UniformFloat(words[0])) - 0.5);
  });
  return uniforms.First(count, seed, stream);
}

double SumSize(const PreparedCase& prepared, size_t output) {
  const double flops = static_cast<double>(prepared.op.CountFlops(prepared.call()));
  const double elements = static_cast<double>(prepared.outputs[output].elements());
  return std::max(prepared.op_case.shared_sum_size, flops / std::max(1.0, elements));
}

std::string ShapeError(const OpCase& op_case) {
  const Attributes attributes = CompleteAttributes(op_case);
  const auto shapes = BuiltinOps().Get(op_case.op).InferShapes({op_case.inputs, {}, attributes});
  if (!shapes.ok()) return shapes.error().message;
  ADD_FAILURE() << ToString(op_case) << " was accepted";
  return {};
}

}  // namespace thimble
