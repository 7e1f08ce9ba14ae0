// The parser's ways (CLI11): what it lets pass and should not, its errors in our words, and what it
// knows as help.
#pragma once

#include <CLI/CLI.hpp>

#include "thimble/base/result.h"
#include "thimble/report/help/command_help.h"

namespace thimble {

// Makes all options of all commands refuse empty values and values that look like options, and the
// commands' own ones what is not among the only values they have.
void RefuseSlips(CLI::App& app);

// Refuses "--out=": the parser would take the next word as its value.
Result<void> CheckWords(int num_words, const char* const* words);

// What was wrong with the command line.
Error ErrorOf(const CLI::App& app, const CLI::ParseError& error);

// The whole program as help, manual page and completion want it, without hidden commands.
HelpProgram Describe(const CLI::App& app);

// Help for the command that was named, or for the program.
std::string HelpFor(const CLI::App& app, size_t width);

}  // namespace thimble
