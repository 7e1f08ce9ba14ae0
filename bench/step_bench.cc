// Times whole training steps on generated images, and each op; see bench/README.md.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "bench/machine_peaks.h"
#include "bench/step_timer.h"
#include "bench/train_flags.h"

namespace thimble {
namespace {

constexpr std::string_view kHelp =
    R"(thimble_step_bench [--seconds S] [--ops] [--shapes] [--serve] [any option of `thimble train`]
Times training steps on generated images; prints one line of JSON with the median step.
  --seconds S  measure for about this long (10), at least 3 steps, on a GPU 60
  --steps N    measure exactly this many steps instead
  --ops        also print a table: time per op and the machine's limit
  --shapes     also print a table: time of a step for each shape of batches (with --data), and of all
               shapes in turn
  --serve      measure once per line of standard input until it ends; a number in the line replaces
               --seconds. This allows timing two programs alternately.
  --model, --batch, --device, --math, --threads (2), --scratch, --simd, --nesterov, ...: see
               `thimble train --help`
)";

struct StepBenchOptions {
  TrainConfig config = BenchDefaults();
  double seconds = 10;
  bool ops = false;
  bool shapes = false;
  bool serve = false;
  bool help = false;
};

Result<double> ParseSeconds(std::string_view text) {
  double seconds = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(seconds) ||
      seconds < 0) {
    return BadInput(fmt::format("--seconds {}: expected a number, at least 0", text));
  }
  return seconds;
}

Result<StepBenchOptions> ParseArguments(const std::vector<std::string>& arguments) {
  StepBenchOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help") {
      options.help = true;
    } else if (arguments[i] == "--ops") {
      options.ops = true;
    } else if (arguments[i] == "--shapes") {
      options.shapes = true;
    } else if (arguments[i] == "--serve") {
      options.serve = true;
    } else if (arguments[i] == "--seconds") {
      if (++i == arguments.size()) return BadInput("--seconds: expected a value");
      THIMBLE_ASSIGN_OR_RETURN(options.seconds, ParseSeconds(arguments[i]));
    } else {
      THIMBLE_TRY(ReadTrainFlag(arguments, &i, options.config));
    }
  }
  return options;
}

Result<void> Bench(const StepBenchOptions& options) {
  const BenchBatches batches = options.shapes ? BenchBatches::kAllShapes : BenchBatches::kFull;
  THIMBLE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::Create(options.config, batches));
  MachinePeaks peaks;
  if (options.ops) {
    THIMBLE_ASSIGN_OR_RETURN(peaks, timer.MeasurePeaks());
  }
  std::string line;
  do {
    double seconds = options.seconds;
    if (options.serve && !std::getline(std::cin, line)) break;
    if (!line.empty()) {
      THIMBLE_ASSIGN_OR_RETURN(seconds, ParseSeconds(line));
    }
    timer.Measure(seconds);
    std::cout << timer.ToJson() << std::endl;
    if (options.ops) {
      timer.MeasureOps();
      std::cout << timer.OpTable(peaks) << std::flush;
    }
    if (options.shapes) {
      THIMBLE_ASSIGN_OR_RETURN(const std::string table, timer.ShapeTable());
      std::cout << table << std::flush;
    }
  } while (options.serve);
  return {};
}

int Main(const std::vector<std::string>& arguments) {
  const auto options = ParseArguments(arguments);
  if (options.ok() && options->help) {
    std::cout << kHelp;
    return 0;
  }
  const Result<void> done = options.ok() ? Bench(*options) : Result<void>(options.error());
  if (done.ok()) return 0;
  std::cerr << "thimble_step_bench: " << done.error().message << "\n";
  return ExitCode(done.error());
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  return thimble::Main(std::vector<std::string>(argv + 1, argv + argc));
}
