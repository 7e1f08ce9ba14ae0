// top_words: the likeliest next words of hypotheses, fused with the output projection: the logits
// x * w transposed, hypotheses times vocabulary, never exist as a whole. x (B, N, C), w (V, C).
//   words                the M = `count` likeliest of the words from `first_word` on, the likeliest
//                        first; of equally likely ones the smaller word first (B, N, M)
//   log_probabilities    theirs: log softmax over the whole vocabulary, also over the words below
//                        first_word, as fairseq does (B, N, M)
//   end_log_probability  that of the word `end` (B, N)
// If the softmax of a hypothesis is not a number, because of NaN or infinite logits, its log
// probabilities are NaN and its words first_word, first_word + 1, and so on. No bit of a hypothesis
// depends on the others.
#include "thimble/ops/top_words/top_words.h"

#include <algorithm>

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"
#include "thimble/ops/top_words/reference.h"

namespace thimble {
namespace {

Result<void> CheckWords(const Attributes& attributes, int64_t vocabulary) {
  const int64_t count = attributes.Int("count");
  const int64_t first_word = attributes.Int("first_word");
  const int64_t end = attributes.Int("end");
  THIMBLE_TRY(RequireAtLeast("count", count, 1));
  THIMBLE_TRY(RequireAtLeast("first_word", first_word, 0));
  if (count > vocabulary - first_word) {
    return BadInput(fmt::format("count is {}, expected at most {}: {} words, the first {} excluded",
                                count, std::max<int64_t>(0, vocabulary - first_word), vocabulary,
                                first_word));
  }
  if (end < 0 || end >= vocabulary) {
    return BadInput(fmt::format("end is {}, expected a word below {}", end, vocabulary));
  }
  return {};
}

Result<std::vector<Shape>> TopWordsShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  THIMBLE_TRY(RequireRank("x", x, 3, "(B, N, C)"));
  THIMBLE_TRY(RequireProjection(x, call.inputs[1]));
  THIMBLE_TRY(CheckWords(call.attributes, call.inputs[1][0]));
  const Shape words = {x[0], x[1], call.attributes.Int("count")};
  return std::vector<Shape>{words, words, Shape{x[0], x[1]}};
}

// Of the product and the exponentials (about 15), with a few passes.
int64_t TopWordsFlops(const OpCall& call) {
  return call.inputs[0].elements() * call.inputs[1][0] * 2 +
         call.inputs[0][0] * call.inputs[0][1] * call.inputs[1][0] * 20;
}

}  // namespace

OpDef Make_top_words() {
  return OpDef("top_words")
      .Input("x")
      .Input("w")
      .Output("words", DType::kI32)
      .Output("log_probabilities", DType::kF32)
      .Output("end_log_probability", DType::kF32)
      .Attribute("count", int64_t{1})
      .Attribute("first_word", int64_t{0})
      .Attribute("end", int64_t{0})
      .ShapeRule(&TopWordsShapes)
      .NoGradient("it only serves decoding")
      .Flops(&TopWordsFlops)
      .CpuKernel<TopWordsCpu>("TopWordsCpu")
      .CudaKernel<TopWordsShortCuda>("TopWordsShortCuda")
      .CudaKernel<TopWordsFp32Cuda>("TopWordsFp32Cuda")
      .CudaKernel<TopWordsTf32Cuda>("TopWordsTf32Cuda")
      .Reference<TopWordsReference>();
}

}  // namespace thimble
