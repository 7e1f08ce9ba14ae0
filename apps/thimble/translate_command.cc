#include <unistd.h>

#include <chrono>
#include <memory>

#include "apps/thimble/command.h"
#include "thimble/base/byte_size.h"
#include "thimble/data/text/line_input.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/evaluate_run.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/run_folder.h"
#include "thimble/train/translate/line_translator.h"

namespace thimble {
namespace {

// Enough for full batches of sentences that have about the same length.
constexpr size_t kMostLinesAtOnce = 2048;

struct TranslateFlags {
  ConfigFlags config;
  TranslationSetup setup;
  bool verbose = false;
};

// Translates standard input to its end, or until nobody reads the translations.
Result<void> TranslateInput(LineTranslator& translator) {
  LineInput input(STDIN_FILENO);
  while (true) {
    THIMBLE_ASSIGN_OR_RETURN(const std::vector<InputLine> lines, input.Next(kMostLinesAtOnce));
    if (lines.empty()) return {};
    const std::vector<std::string> translations = translator.Translate(lines);
    for (const std::string& translation : translations) Print("{}\n", translation);
    if (!FlushOutput()) return {};
  }
}

void Describe(const LineTranslator& translator, double seconds) {
  WriteMessage(
      fmt::format("translated {} lines with {} tokens, {} of them unknown, in {:.2f} s; arena {}\n",
                  translator.lines(), translator.tokens(), translator.unknown_tokens(), seconds,
                  FormatBytes(static_cast<int64_t>(translator.program().arena_bytes))));
}

Result<int> RunTranslate(TranslateFlags& flags) {
  TranslationSetup& setup = flags.setup;
  TrainConfig defaults;
  THIMBLE_TRY(ReadRunConfig(setup.run_folder, defaults));
  defaults = EvaluationConfig(std::move(defaults));
  if (defaults.beam == 0) defaults.beam = TrainConfig().beam;
  if (setup.weights.empty()) setup.weights = setup.run_folder + "/weights.safetensors";
  THIMBLE_ASSIGN_OR_RETURN(setup.config, flags.config.Resolve(defaults));
  THIMBLE_ASSIGN_OR_RETURN(const auto translator, LineTranslator::Open(setup, BuiltinOps()));
  const auto start = std::chrono::steady_clock::now();
  THIMBLE_TRY(TranslateInput(*translator));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (translator->cut_lines() > 0) {
    WriteMessage(fmt::format("thimble: {} lines were longer than {} tokens and were cut\n",
                             translator->cut_lines(), setup.longest - 1));
  }
  if (flags.verbose) Describe(*translator, seconds.count());
  return 0;
}

}  // namespace

void AddTranslateCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "translate", "translate each line of standard input with the network of a run");
  auto flags = std::make_shared<TranslateFlags>();
  command->add_option("run", flags->setup.run_folder, "run folder of a translation")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--weights", flags->setup.weights,
                   "other weights of this network (a .safetensors file)")
      ->type_name("FILE")
      ->group(option_group::kWhat);
  command
      ->add_option("--longest", flags->setup.longest,
                   "tokens of the longest sentence; longer lines are cut")
      ->capture_default_str()
      ->type_name("N")
      ->group(option_group::kWhat);
  command->add_flag("--verbose", flags->verbose, "say at the end how long it took");
  flags->config.AddTo(*command, {"batch", "beam", "length-penalty", "device", "math", "threads",
                                 "simd", "precision", "scratch", "budget"});
  command->footer(
      "The defaults of these options come from the run's config.toml. Lines are expected as the\n"
      "text was that the run's data were prepared from: tokenised or not, in the same case. If\n"
      "the run has merges (bpe.codes), words are split into subwords, but those that end in\n"
      "\"@@\" are subwords already; if it has none, words that its dictionary lacks are split\n"
      "into entries that it has. Each line of the input gives one line of output, in the same\n"
      "order; lines are translated as soon as no more of them are waiting.\n");
  command->callback([flags, exit_code] {
    const auto result = RunTranslate(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
