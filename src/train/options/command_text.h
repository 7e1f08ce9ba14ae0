// The commands that repeat or continue a run.
#pragma once

#include <string>

#include "thimble/train/options/config.h"

namespace thimble {

// The text as one word of a shell command, quoted if necessary.
std::string ShellWord(const std::string& text);

// "thimble train --model … --data …" with every other option that differs from its default, except
// --resume, --extend and --overwrite: the command starts a new run.
std::string CommandOf(const TrainConfig& config);

// The command that continues the run in `run_folder`.
std::string ContinueCommand(TrainConfig config, const std::string& run_folder);

}  // namespace thimble
