// Padded sentences in tests of ops on sequences: random inputs of a call, a sentence of a batch
// alone, other contents of padding, and every kernel on every SIMD target.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {

// Runs an op with one of its kernels.
using OpRunner =
    std::function<std::vector<OpData>(const OpCase& op_case, const std::vector<OpData>& data)>;

// Calls body for the vector kernel on every target and for the reference.
inline void ForEachKernelAndTarget(const std::function<void(const OpRunner&)>& body) {
  const auto run_kernel = [](size_t kernel) -> OpRunner {
    return [kernel](const OpCase& op_case, const std::vector<OpData>& data) {
      return RunOp(op_case, data, kernel);
    };
  };
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    SCOPED_TRACE(target);
    body(run_kernel(0));
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
  SCOPED_TRACE("reference");
  body(run_kernel(1));
}

inline bool HaveSameFloatBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// The inputs that a check of a kernel would draw.
inline std::vector<OpData> RandomData(const OpCase& op_case) {
  const PreparedCase prepared(op_case);
  std::vector<OpData> data;
  for (const auto& input : RandomInputs(prepared, 1.0)) {
    data.push_back({{input.numbers.begin(), input.numbers.end()},
                    {input.integers.begin(), input.integers.end()}});
  }
  return data;
}

// Lengths from 0 to `positions`, often the largest.
inline std::vector<double> RandomLengths(CaseDraw& draw, int64_t batch, int64_t positions) {
  std::vector<double> lengths;
  for (int64_t b = 0; b < batch; ++b) {
    lengths.push_back(static_cast<double>(draw.OneIn(3) ? positions : draw.Between(0, positions)));
  }
  return lengths;
}

// An array (B, T, N).
struct SentenceArray {
  const std::vector<float>& numbers;
  int64_t positions;
  int64_t width;

  // The first `count` positions of a sentence, followed by `padding` positions of this value.
  std::vector<float> Cut(int64_t b, int64_t count, int64_t padding, float value) const {
    const auto first = numbers.begin() + b * positions * width;
    std::vector<float> cut(first, first + count * width);
    cut.insert(cut.end(), static_cast<size_t>(padding * width), value);
    return cut;
  }
};

inline SentenceArray ArrayOf(const Shape& shape, const std::vector<float>& numbers) {
  return {numbers, shape[1], shape[2]};
}

// A call with one sentence of a batch.
struct LoneSentence {
  OpCase op_case;
  std::vector<OpData> data;
};

// Sentence b of a call. The inputs `padded` (B, T, N) keep the positions of its length, `lengths`
// being the index of that input, and get `padding` positions of NaN instead of their own padding.
inline LoneSentence SentenceAlone(const OpCase& op_case, const std::vector<OpData>& data, int64_t b,
                                  const std::vector<size_t>& padded, size_t lengths,
                                  int64_t padding) {
  LoneSentence alone{op_case, data};
  const auto row = static_cast<size_t>(b);
  const int64_t length = data[lengths].integers[row];
  for (size_t i = 0; i < data.size(); ++i) {
    const Shape& shape = op_case.inputs[i];
    if (shape.rank() == 3) {
      const bool is_padded = std::find(padded.begin(), padded.end(), i) != padded.end();
      const int64_t count = is_padded ? length : shape[1];
      const int64_t more = is_padded ? padding : 0;
      alone.data[i].floats = ArrayOf(shape, data[i].floats).Cut(b, count, more, NAN);
      alone.op_case.inputs[i] = Shape{1, count + more, shape[2]};
    } else if (shape == Shape{op_case.inputs[0][0]}) {
      alone.data[i].integers = {data[i].integers[row]};
      alone.op_case.inputs[i] = Shape{1};
    }
  }
  alone.op_case.given_inputs.clear();
  return alone;
}

// Which inputs and outputs (B, T, N) are padded, and the index of the input with the lengths.
struct PaddedPorts {
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
  size_t lengths;
};

// Each sentence gives the same bits alone as in the batch, whatever its padding holds and however
// long it is; outputs at padded positions are zero.
inline void ExpectSentencesForThemselves(const OpRunner& run, const OpCase& op_case,
                                         const PaddedPorts& ports) {
  SCOPED_TRACE(ToString(op_case));
  const auto data = RandomData(op_case);
  const auto whole = run(op_case, data);
  const PreparedCase prepared(op_case);
  for (int64_t b = 0; b < op_case.inputs[0][0]; ++b) {
    const int64_t length = data[ports.lengths].integers[static_cast<size_t>(b)];
    for (const int64_t padding : {0, 1, 6}) {
      const LoneSentence alone =
          SentenceAlone(op_case, data, b, ports.inputs, ports.lengths, padding);
      const auto outputs = run(alone.op_case, alone.data);
      for (size_t o = 0; o < outputs.size(); ++o) {
        const Shape& shape = prepared.outputs[o];
        const bool is_padded =
            std::find(ports.outputs.begin(), ports.outputs.end(), o) != ports.outputs.end();
        const int64_t more = is_padded ? padding : 0;
        const auto expected =
            ArrayOf(shape, whole[o].floats).Cut(b, is_padded ? length : shape[1], more, 0.0F);
        EXPECT_TRUE(HaveSameFloatBits(outputs[o].floats, expected))
            << "output " << o << ", sentence " << b << ", " << padding << " padded positions";
      }
    }
  }
}

}  // namespace thimble
