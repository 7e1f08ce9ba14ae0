// The three standard streams of a program: data files never take their descriptors, writing to them
// never throws, and lost output is reported.
#pragma once

#include <string_view>

namespace thimble {

// Call first in main. Opens /dev/null on each of descriptors 0, 1 and 2 that is closed, so that no
// file opened later takes its place; writing there still fails. Ignores SIGPIPE: a disconnected
// reader makes write() fail instead of ending the run.
void ProtectStandardStreams();

// Progress and messages, to standard error. Write errors are ignored: no run ends because its log
// cannot be written.
void WriteMessage(std::string_view text) noexcept;

// Results, to standard output; buffered. FinishOutput reports failures.
void WriteOutput(std::string_view text) noexcept;

// Writes what is in the buffer. Returns whether all output so far could be written.
bool FlushOutput() noexcept;

// Flushes the buffer. Returns `exit_code`, but 1 in place of 0 if any output was lost, with a
// message. A reader that closed its end (`| head -1`) causes no message.
int FinishOutput(int exit_code);

}  // namespace thimble
