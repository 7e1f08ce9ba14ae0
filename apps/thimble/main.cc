// thimble: the command line. Exit codes: 0 done, 1 failed while running, 2 wrong use or bad input,
// 3 does not fit the budget.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/thimble/command.h"

int main(int argc, char** argv) {
  CLI::App app("Trains neural networks in the memory you have.", "thimble");
  app.set_version_flag("--version", THIMBLE_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  thimble::AddTrainCommand(app, &exit_code);
  thimble::AddEvalCommand(app, &exit_code);
  thimble::AddPlanCommand(app, &exit_code);
  thimble::AddModelsCommand(app, &exit_code);
  thimble::AddDataCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "thimble: {} (see thimble --help)\n", error.what());
    return 2;
  }
  return exit_code;
}
