#include "apps/thimble/command.h"
#include "apps/thimble/parser.h"
#include "thimble/report/help/bash_completion.h"
#include "thimble/report/help/man_page.h"

namespace thimble {

void AddGenerateCommands(CLI::App& app, int* exit_code) {
  const auto add = [&](const std::string& name, std::string (*make)(const HelpProgram&)) {
    app.add_subcommand(name)->group("")->callback([&app, exit_code, make] {
      Print("{}", make(Describe(app)));
      *exit_code = 0;
    });
  };
  add("generate-man", ManPage);
  add("generate-completion", BashCompletion);
}

}  // namespace thimble
