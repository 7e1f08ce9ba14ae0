// thimble: the command line. Exit codes: 0 done, 1 failed while running, 2 wrong use or bad input,
// 3 does not fit the budget.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "apps/thimble/command.h"
#include "thimble/base/version.h"
#include "thimble/device/cpu/memory_limits.h"

namespace thimble {
namespace {

int Run(int argc, char** argv) {
  CLI::App app("Trains neural networks in the memory you have.", "thimble");
  app.set_version_flag("--version", std::string(Version()));
  app.require_subcommand(1);
  int exit_code = 0;
  AddTrainCommand(app, &exit_code);
  AddEvalCommand(app, &exit_code);
  AddPlanCommand(app, &exit_code);
  AddProfileCommand(app, &exit_code);
  AddReportCommand(app, &exit_code);
  AddModelsCommand(app, &exit_code);
  AddDataCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    // Said in our words: the parser only sees that no sub-command was given.
    const auto words = app.remaining();
    const bool unknown = app.get_subcommands().empty() && !words.empty();
    return Report(BadInput(
        fmt::format("{} (see thimble --help)",
                    unknown ? fmt::format("no sub-command '{}'", words.front()) : error.what())));
  }
  return exit_code;
}

// The arena asks before it takes memory; this is about everything else.
int ReportOutOfMemory() {
  try {
    return Report(Failed(fmt::format("out of memory: {}; a higher limit or a smaller model helps",
                                     DescribeTightest(ReadMemoryLimits()))));
  } catch (const std::bad_alloc&) {
    std::fputs("thimble: out of memory\n", stderr);
    return 1;
  }
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  try {
    return thimble::Run(argc, argv);
  } catch (const std::bad_alloc&) {
    return thimble::ReportOutOfMemory();
  } catch (const std::exception& error) {
    return thimble::Report(thimble::Failed(error.what()));
  }
}
