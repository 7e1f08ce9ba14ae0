// Adapts the command-line parser (CLI11): stricter checks, readable error messages, and the data
// for help texts.
#pragma once

#include <CLI/CLI.hpp>

#include "thimble/base/result.h"
#include "thimble/report/help/command_help.h"

namespace thimble {

// Makes every option of every command reject empty values and values that look like options.
// Options outside the table (train/options/options.h) also reject values that are not in their
// list.
void RefuseSlips(CLI::App& app);

// Rejects "--out=": the parser would take the next word as its value.
Result<void> CheckWords(int num_words, const char* const* words);

// The parser's error in our words, as kBadInput.
Error ErrorOf(const CLI::App& app, const CLI::ParseError& error);

// Describes the program, without hidden commands, for help, manual page and completion.
HelpProgram Describe(const CLI::App& app);

// Help for the command that was named, or for the program.
std::string HelpFor(const CLI::App& app, size_t width);

}  // namespace thimble
