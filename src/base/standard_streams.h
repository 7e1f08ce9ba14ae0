// The three standard streams of a program: data files never get their descriptors, writing to them
// never throws, and output that was lost is noticed.
#pragma once

#include <string_view>

namespace thimble {

// Call first in main. Each of descriptors 0, 1 and 2 that is closed gets /dev/null, so that no file
// opened later takes its place; what is written there still fails. A reader that has gone becomes
// an error of write() instead of SIGPIPE, which would end a run in the middle.
void ProtectStandardStreams();

// Progress and messages, to standard error. What cannot be written is lost, and the program goes
// on: no run ends because its log cannot be written.
void WriteMessage(std::string_view text) noexcept;

// Results, to standard output; buffered. Failures are kept for FinishOutput.
void WriteOutput(std::string_view text) noexcept;

// Writes what is buffered. Returns `exit_code`, or 1 in place of 0 where any output was lost, which
// a message says. A reader that has gone (`| head -1`) gets no message: it has what it wanted.
int FinishOutput(int exit_code);

}  // namespace thimble
