// Translations with cached states are those of the whole network, whatever else is translated at
// the same time, and within the planned memory.
#include "thimble/train/translate/batch_translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/train/small_translator.h"
#include "thimble/base/philox.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/model/sequence_layers.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

using testing::IsEmpty;

// Enlarges the weights of the output, so that the network is sure of what it says. It never says
// <s> or <pad>, which no translation may have.
void Sharpen(Executor& executor) {
  const auto bytes = executor.ResidentBytes("decoder.embed_out");
  const std::span numbers(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  for (float& number : numbers) number *= 4;
  std::ranges::fill(numbers.first(2 * SmallSpec().width), 0.0F);
  executor.StoreResidents();
}

std::vector<InitRule> InitsOf(const TranslatorSpec& spec) {
  return BuildTranslator(spec, BuiltinOps(), {1, 1, 1}, Mode::kTrain).value().inits;
}

class SmallTranslator {
 public:
  explicit SmallTranslator(const TrainConfig& config = SmallConfig(), uint64_t seed = 1)
      : config_(config),
        program_(MakeTranslationProgram(config, SmallSpec(), kLongest, BuiltinOps()).value()),
        executor_(Executor::CreateFor(program_.program, BuiltinOps()).value()),
        translator_(*executor_, *program_.decoding, SearchOptionsOf(config)) {
    InitializeResidents(*executor_, InitsOf(SmallSpec()), seed);
    if (config.levers.empty()) Sharpen(*executor_);
  }

  std::vector<Translation> Translate(std::span<const WordIds> sources) {
    return translator_.Translate(sources);
  }
  const TrainingProgram& program() const { return program_; }
  Executor& executor() { return *executor_; }

 private:
  TrainConfig config_;
  TrainingProgram program_;
  std::unique_ptr<Executor> executor_;
  BatchTranslator translator_;
};

// Of 1 to 29 words.
std::vector<WordIds> Sentences(size_t count) {
  const RandomSource source(3, RandomPurpose::kInit);
  std::vector<WordIds> sentences(count);
  for (size_t i = 0; i < count; ++i) {
    const auto words = static_cast<size_t>(1 + i * 7 % (kLongest - 1));
    for (size_t w = 0; w < words; ++w) {
      const auto drawn = source.Words(0, static_cast<uint32_t>(i), w)[0];
      sentences[i].push_back(Dictionary::kUnknown + static_cast<int32_t>(drawn % 27));
    }
    sentences[i].push_back(Dictionary::kEnd);
  }
  return sentences;
}

// The whole network on one sentence and its translation.
struct WholeResult {
  double log_probability = 0;
  int64_t likeliest = 0;  // tokens that are the likeliest ones after those before them
};

WholeResult RunWhole(SmallTranslator& small, const WordIds& source, const WordIds& words) {
  WordIds target = words;
  target.push_back(Dictionary::kEnd);
  WordIds decoder_input(target.size(), Dictionary::kEnd);
  std::ranges::copy(words, decoder_input.begin() + 1);
  TranslatorSpec spec = SmallSpec();
  spec.label_smoothing = 0;
  Network network = BuildTranslator(spec, BuiltinOps(), {1, std::ssize(source), std::ssize(target)},
                                    Mode::kEvaluate)
                        .value();
  auto program =
      PlanProgram({{.name = "whole", .graph = std::move(network.graph)}}, BuiltinOps(), {}, {});
  const auto executor = Executor::Create(std::move(program).value(), BuiltinOps()).value();
  for (const Resident& resident : executor->program().residents.residents) {
    std::ranges::copy(small.executor().ResidentBytes(resident.name),
                      executor->ResidentBytes(resident.name).begin());
  }
  executor->Prepare(0);
  const auto write = [&](const char* input, const WordIds& ids) {
    executor->WriteNow(executor->View(0, input), std::as_bytes(std::span(ids)));
  };
  write(kSourceInput, source);
  write(kSourceLengthsInput, {static_cast<int32_t>(source.size())});
  write(kDecoderInput, decoder_input);
  write(kTargetInput, target);
  write(kTargetLengthsInput, {static_cast<int32_t>(target.size())});
  executor->Run(0);
  return {-double{ReadNumber<float>(*executor, executor->View(0, kNllOutput))},
          ReadNumber<int32_t>(*executor, executor->View(0, kCorrectOutput))};
}

TEST(BatchTranslator, ScoresAreThoseOfTheWholeNetwork) {
  SmallTranslator small;
  const auto sources = Sentences(40);
  const auto translations = small.Translate(sources);
  size_t longest = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const WordIds& words = translations[i].words;
    const double whole = RunWhole(small, sources[i], words).log_probability;
    const auto tokens = static_cast<double>(words.size() + 1);
    EXPECT_NEAR(translations[i].score * tokens, whole, 1e-4 * tokens) << "sentence " << i;
    longest = std::max(longest, words.size());
  }
  EXPECT_GT(longest, 5U);  // than the windows of the convolutions: their histories were overwritten
}

TEST(BatchTranslator, OneHypothesisTakesTheLikeliestWord) {
  TrainConfig config = SmallConfig();
  config.beam = 1;
  SmallTranslator small(config);
  const auto sources = Sentences(40);
  const auto translations = small.Translate(sources);
  int64_t ended = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto words = std::ssize(translations[i].words);
    const bool was_ended = words == MaxTranslatedWords(std::ssize(sources[i]));
    // An empty translation is none, even where </s> is the likeliest first word.
    const int64_t likeliest = RunWhole(small, sources[i], translations[i].words).likeliest;
    EXPECT_GE(likeliest, words - 1 + (was_ended ? 0 : 1)) << "sentence " << i;
    ended += was_ended ? 1 : 0;
  }
  EXPECT_LT(ended, 40);
}

TEST(BatchTranslator, OtherSentencesChangeNothing) {
  const auto sources = Sentences(25);
  SmallTranslator together;
  const auto expected = together.Translate(sources);
  SmallTranslator alone;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto translation = alone.Translate(std::span(sources).subspan(i, 1));
    EXPECT_EQ(translation[0].words, expected[i].words) << "sentence " << i;
    EXPECT_EQ(translation[0].score, expected[i].score) << "sentence " << i;
  }
}

TEST(BatchTranslator, ThreadsChangeNothing) {
  const auto sources = Sentences(25);
  const auto expected = SmallTranslator().Translate(sources);
  TrainConfig config = SmallConfig();
  config.threads = 3;
  const auto translations = SmallTranslator(config).Translate(sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(translations[i].words, expected[i].words);
    EXPECT_EQ(translations[i].score, expected[i].score);
  }
}

TEST(BatchTranslator, MeasuresWhatWasPlannedInEachPrecision) {
  for (const char* precision : {"fp32", "fp16", "bf16"}) {
    TrainConfig config = SmallConfig();
    config.levers["precision"] = precision;
    SmallTranslator small(config);
    small.Translate(Sentences(30));
    small.Translate(Sentences(30));
    Executor& executor = small.executor();
    executor.ScanArena();
    EXPECT_THAT(executor.audit().faults(), IsEmpty()) << precision;
    EXPECT_EQ(executor.audit().measured_peak_bytes(), executor.planned_peak_bytes()) << precision;
    EXPECT_EQ(executor.allocations_in_runs().heap_calls, 0) << precision;
  }
}

TEST(BatchTranslator, NothingToTranslate) {
  EXPECT_THAT(SmallTranslator().Translate({}), IsEmpty());
}

}  // namespace
}  // namespace thimble
