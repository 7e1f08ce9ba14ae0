// thimble: the command line. Exit codes: 0 done, 1 failed while running or output lost, 2 wrong
// usage or bad input, 3 does not fit the budget, 128 + N stopped by signal N.
#include <fmt/ranges.h>

#include <new>

#include "apps/thimble/command.h"
#include "apps/thimble/parser.h"
#include "thimble/base/exception_error.h"
#include "thimble/base/version.h"
#include "thimble/device/cpu/memory_limits.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/report/text_style.h"

namespace thimble {
namespace {

std::string VersionText() {
  return fmt::format("thimble {}\nSIMD: {}; this machine runs {}\nGPU code: {}", Version(),
                     fmt::join(CompiledSimdTargets(), ", "), ActiveSimdTarget(), GpuCode());
}

int Run(int num_words, char** words) {
  CLI::App app("trains neural networks in the memory you have", "thimble");
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", VersionText, "print version, SIMD targets and GPU code");
  app.require_subcommand(1);
  int exit_code = 0;
  AddTrainCommand(app, &exit_code);
  AddEvalCommand(app, &exit_code);
  AddTranslateCommand(app, &exit_code);
  AddPlanCommand(app, &exit_code);
  AddProfileCommand(app, &exit_code);
  AddReportCommand(app, &exit_code);
  AddCalibrateCommand(app, &exit_code);
  AddModelsCommand(app, &exit_code);
  AddDataCommand(app, &exit_code);
  AddGenerateCommands(app, &exit_code);
  RefuseSlips(app);
  if (auto checked = CheckWords(num_words, words); !checked.ok()) return Report(checked.error());
  try {
    app.parse(num_words, words);
  } catch (const CLI::CallForHelp&) {
    Print("{}", HelpFor(app, StyleOfOutput().width));
  } catch (const CLI::CallForVersion& version) {
    Print("{}\n", version.what());
  } catch (const CLI::ParseError& error) {
    return Report(ErrorOf(app, error));
  }
  return exit_code;
}

// The arena checks the limits before it allocates; this covers all other allocations.
int ReportOutOfMemory() {
  try {
    return Report(Failed(fmt::format("out of memory: {}; raise the limit or train a smaller model",
                                     DescribeTightest(ReadMemoryLimits()))));
  } catch (const std::bad_alloc&) {
    WriteMessage("thimble: out of memory\n");
    return 1;
  }
}

int RunOrExplain(int num_words, char** words) {
  try {
    return Run(num_words, words);
  } catch (const std::bad_alloc&) {
    return ReportOutOfMemory();
  } catch (const std::exception& exception) {
    return Report(ErrorOf(exception));
  }
}

}  // namespace
}  // namespace thimble

int main(int num_words, char** words) {
  thimble::ProtectStandardStreams();
  return thimble::FinishOutput(thimble::RunOrExplain(num_words, words));
}
