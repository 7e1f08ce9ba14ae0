// Code shared by the commands: options from the table, output, exit codes.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/base/standard_streams.h"
#include "thimble/train/options/config.h"

namespace thimble {

// Adds options of the table (train/options/options.h) to a command and records the values that were
// given.
class ConfigFlags {
 public:
  // All options of the table, or the named ones.
  void AddTo(CLI::App& command, const std::vector<std::string>& names = {});
  // The usual settings for what is given (usual_settings.h), then --config FILE, then the command
  // line.
  Result<TrainConfig> Resolve() const;
  // The same with other defaults.
  Result<TrainConfig> Resolve(TrainConfig defaults) const;
  // Whether the command line has a configuration file or any of these options.
  bool HasFileOr(const std::vector<std::string>& names) const;

 private:
  // Sets what the file and the command line say.
  Result<void> Apply(TrainConfig& config) const;

  std::string config_file_;
  std::vector<std::pair<std::string, std::string>> given_;  // option name, text
};

// Prints results to standard output.
template <class... Values>
void Print(fmt::format_string<Values...> format, Values&&... values) {
  WriteOutput(fmt::format(format, std::forward<Values>(values)...));
}

// Prints the error as one line to standard error and returns its exit code.
int Report(const Error& error);

// Each adds its command to `app`. If the user runs that command, *exit_code is set to its result.
void AddTrainCommand(CLI::App& app, int* exit_code);
void AddEvalCommand(CLI::App& app, int* exit_code);
void AddTranslateCommand(CLI::App& app, int* exit_code);
void AddPlanCommand(CLI::App& app, int* exit_code);
void AddProfileCommand(CLI::App& app, int* exit_code);
void AddReportCommand(CLI::App& app, int* exit_code);
void AddCalibrateCommand(CLI::App& app, int* exit_code);
void AddModelsCommand(CLI::App& app, int* exit_code);
void AddDataCommand(CLI::App& app, int* exit_code);
// Hidden commands with which the build creates the manual page and the shell completion.
void AddGenerateCommands(CLI::App& app, int* exit_code);

}  // namespace thimble
