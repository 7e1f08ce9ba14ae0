// thimble: the command line. Exit codes: 0 done, 1 failed while running, 2 wrong use or bad input,
// 3 does not fit the budget.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/thimble/command.h"
#include "thimble/base/version.h"

int main(int argc, char** argv) {
  CLI::App app("Trains neural networks in the memory you have.", "thimble");
  app.set_version_flag("--version", std::string(thimble::Version()));
  app.require_subcommand(1);
  int exit_code = 0;
  thimble::AddTrainCommand(app, &exit_code);
  thimble::AddEvalCommand(app, &exit_code);
  thimble::AddPlanCommand(app, &exit_code);
  thimble::AddProfileCommand(app, &exit_code);
  thimble::AddReportCommand(app, &exit_code);
  thimble::AddModelsCommand(app, &exit_code);
  thimble::AddDataCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    // Said in our words: the parser only sees that no sub-command was given.
    const auto words = app.remaining();
    const bool unknown = app.get_subcommands().empty() && !words.empty();
    return Report(thimble::BadInput(
        fmt::format("{} (see thimble --help)",
                    unknown ? fmt::format("no sub-command '{}'", words.front()) : error.what())));
  } catch (const std::exception& error) {  // no memory, no threads
    return Report(thimble::Failed(error.what()));
  }
  return exit_code;
}
