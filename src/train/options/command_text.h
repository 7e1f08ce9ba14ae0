// Commands as a user would type them: to repeat a run, to continue it.
#pragma once

#include <string>

#include "thimble/train/options/config.h"

namespace thimble {

// A word of a shell's command line, in quotes where it needs them.
std::string ShellWord(const std::string& text);

// "thimble train --model … --data …" with every other option that differs from its default. Without
// what speaks of the run in --out (--resume, --extend, --overwrite): it begins at the beginning.
std::string CommandOf(const TrainConfig& config);

// The command that goes on with the run in `run_folder`.
std::string ContinueCommand(TrainConfig config, const std::string& run_folder);

}  // namespace thimble
