#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// The exit code of a shell if the program does not exist.
constexpr int kCannotRun = 127;

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  THIMBLE_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe: errno {}", errno);
  return {ends[0], ends[1]};
}

// In the child, after fork: only calls that are safe there.
[[noreturn]] void Become(char* const* words, char* const* environment, const Pipe& out,
                         const Pipe& err, const ProcessLimits& limits) {
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  const int input = ::open(limits.input.c_str(), O_RDONLY | O_CLOEXEC);
  ::dup2(input, STDIN_FILENO);
  if (limits.max_file_bytes > 0) {
    // If the signal is ignored, write() fails with an error, as on a full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {static_cast<rlim_t>(limits.max_file_bytes), RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (limits.max_address_bytes > 0) {
    const auto most = static_cast<rlim_t>(limits.max_address_bytes);
    const rlimit limit = {most, most};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ::execve(words[0], words, environment);
  ::_exit(kCannotRun);
}

// Appends the available output; closes the descriptor at the end of the stream.
void Drain(int& descriptor, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  if (got > 0 || (got < 0 && errno == EINTR)) return;
  ::close(descriptor);
  descriptor = -1;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const ProcessLimits& limits)
    : started_(Clock::now()), timeout_(limits.timeout) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  for (const std::string& variable : limits.environment) {
    environment.push_back(const_cast<char*>(variable.c_str()));
  }
  environment.push_back(nullptr);
  const Pipe out = MakePipe();
  const Pipe err = MakePipe();
  pid_ = ::fork();
  THIMBLE_CHECK(pid_ >= 0, "no process: errno {}", errno);
  if (pid_ == 0) Become(words.data(), environment.data(), out, err, limits);
  ::close(out.write);
  ::close(err.write);
  out_ = out.read;
  err_ = err.read;
}

Process::~Process() {
  if (pid_ < 0) return;
  Signal(SIGKILL);
  Wait();
}

bool Process::Poll(std::chrono::milliseconds patience) {
  // poll() ignores negative descriptors.
  std::array<pollfd, 2> ready = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  ::poll(ready.data(), ready.size(), static_cast<int>(patience.count()));
  if (ready[0].revents != 0) Drain(out_, result_.out);
  if (ready[1].revents != 0) Drain(err_, result_.err);
  return out_ >= 0 || err_ >= 0;
}

ProcessResult Process::Wait() {
  while (Poll(std::chrono::milliseconds(100))) {
    if (Clock::now() - started_ < timeout_ || result_.timed_out) continue;
    result_.timed_out = true;
    Signal(SIGKILL);
  }
  int status = 0;
  rusage usage = {};
  THIMBLE_CHECK(::wait4(std::exchange(pid_, -1), &status, 0, &usage) > 0, "errno {}", errno);
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    result_.cpu_seconds +=
        static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  result_.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  return std::move(result_);
}

ProcessResult RunProcess(const std::vector<std::string>& command, const ProcessLimits& limits) {
  return Process(command, limits).Wait();
}

}  // namespace thimble
