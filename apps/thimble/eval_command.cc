#include <memory>

#include "apps/thimble/command.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/evaluate_run.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/run_folder.h"

namespace thimble {
namespace {

struct EvalFlags {
  ConfigFlags config;
  std::string run;
  std::string weights;
  std::string part = "test";
  bool json = false;
};

Result<int> RunEval(const EvalFlags& flags) {
  TrainConfig defaults;
  std::string weights = flags.weights;
  if (!flags.run.empty()) {
    THIMBLE_TRY(ReadRunConfig(flags.run, defaults));
    defaults = EvaluationConfig(std::move(defaults));
    if (weights.empty()) weights = flags.run + "/weights.safetensors";
  }
  if (weights.empty())
    return BadInput("eval: expected a run folder, or --weights FILE with --model");
  THIMBLE_ASSIGN_OR_RETURN(const TrainConfig config, flags.run.empty()
                                                         ? flags.config.Resolve()
                                                         : flags.config.Resolve(defaults));
  THIMBLE_ASSIGN_OR_RETURN(const EvaluationRun result,
                           EvaluateWeights(config, weights, flags.part, BuiltinOps()));
  if (flags.json) {
    Print("{}", result.json);
  } else {
    Print("{} {}: accuracy {:.2f} %, loss {:.4f} over {} {}; arena {} bytes\n", config.model,
          flags.part, 100 * result.evaluation.accuracy, result.evaluation.loss,
          result.evaluation.count, result.unit, result.arena_bytes);
    if (const auto& translations = result.translations) {
      Print(
          "BLEU {:.2f} (sacreBLEU {:.2f}) over {} sentences, {} of them exactly as expected, "
          "translated in {:.1f} s\n",
          translations->bleu, translations->sacrebleu, translations->sentences, translations->exact,
          translations->seconds);
    }
  }
  return 0;
}

}  // namespace

void AddEvalCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("eval", "measure the accuracy of trained weights");
  auto flags = std::make_shared<EvalFlags>();
  command->add_option("run", flags->run, "run folder with the settings and weights to use")
      ->type_name("DIR");
  command->add_option("--weights", flags->weights, "weights to evaluate (a .safetensors file)")
      ->type_name("FILE")
      ->group(option_group::kWhat);
  command->add_option("--part", flags->part, "part of the data to evaluate on")
      ->capture_default_str()
      ->type_name("train|validation|test")
      ->group(option_group::kWhat);
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->config.AddTo(*command,
                      {"model", "data", "batch", "validation", "seed", "device", "math", "threads",
                       "simd", "precision", "scratch", "budget", "beam", "length-penalty"});
  command->footer("With RUN, the defaults of these options come from its config.toml.\n");
  command->callback([flags, exit_code] {
    const auto result = RunEval(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
