#include "thimble/base/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace thimble {
namespace {

int first_output_error = 0;  // errno of the first failure on standard output

void NoteOutputError() {
  if (first_output_error == 0) first_output_error = errno == 0 ? EIO : errno;
}

}  // namespace

void ProtectStandardStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() takes the lowest free descriptor, which is this one. The access mode is reversed, so
    // that using the stream fails as it does on a closed one.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) != descriptor) ::_exit(1);  // no stream to report it on
  }
  std::signal(SIGPIPE, SIG_IGN);
}

void WriteMessage(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void WriteOutput(std::string_view text) noexcept {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) NoteOutputError();
}

bool FlushOutput() noexcept {
  errno = 0;
  if (std::fflush(stdout) != 0) NoteOutputError();
  return first_output_error == 0;
}

int FinishOutput(int exit_code) {
  if (FlushOutput()) return exit_code;
  if (first_output_error != EPIPE) {
    WriteMessage(fmt::format("thimble: standard output: cannot write: {}\n",
                             std::strerror(first_output_error)));
  }
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace thimble
