#include "thimble/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace thimble {
namespace {

// A pipe whose ends are closed on exec and by the destructor.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool ok() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void CloseWriteEnd() { Close(1); }

  // Appends the available bytes to `text`. Closes the pipe at end of file.
  void Drain(std::string& text) {
    std::array<char, 4096> buffer{};
    const ssize_t got = read(read_end(), buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) Close(0);
  }

 private:
  void Close(size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

  std::array<int, 2> ends_{-1, -1};
};

// While an object lives, SIGCHLD is ignored: the kernel discards ended children and their resource
// usage.
class ForgottenChildren {
 public:
  ForgottenChildren() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGCHLD, &ignore, &before_);
  }
  ~ForgottenChildren() { sigaction(SIGCHLD, &before_, nullptr); }
  ForgottenChildren(const ForgottenChildren&) = delete;
  ForgottenChildren& operator=(const ForgottenChildren&) = delete;

 private:
  struct sigaction before_ {};
};

// Returns 0 or an errno value. (posix_spawn does not copy this process's memory.)
int Spawn(const std::string& path, const std::vector<std::string>& arguments, const Pipe& out,
          const Pipe& err, pid_t& child) {
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write_end(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t as_usual;
  sigemptyset(&as_usual);
  sigaddset(&as_usual, SIGCHLD);
  posix_spawnattr_setsigdefault(&attributes, &as_usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(&child, path.c_str(), &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

// Makes the process the first to be ended when memory runs out. Without /proc nothing changes.
void OfferToTheKernel(pid_t process) {
  const std::string path = fmt::format("/proc/{}/oom_score_adj", process);
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  constexpr std::string_view kFirst = "1000";
  [[maybe_unused]] const ssize_t written = write(file, kFirst.data(), kFirst.size());
  close(file);
}

}  // namespace

Result<ChildOutput> RunChild(const std::string& path, const std::vector<std::string>& arguments) {
  Pipe out;
  Pipe err;
  if (!out.ok() || !err.ok()) return Failed(fmt::format("{}: {}", path, std::strerror(errno)));
  const ForgottenChildren forgotten;
  pid_t child = -1;
  if (const int error = Spawn(path, arguments, out, err, child); error != 0) {
    return Failed(fmt::format("{}: {}", path, std::strerror(error)));
  }
  OfferToTheKernel(child);
  out.CloseWriteEnd();
  err.CloseWriteEnd();
  ChildOutput output;
  while (out.ok() || err.ok()) {
    // poll() ignores negative descriptors.
    std::array<pollfd, 2> ready = {pollfd{out.read_end(), POLLIN, 0},
                                   pollfd{err.read_end(), POLLIN, 0}};
    if (poll(ready.data(), ready.size(), -1) < 0) continue;
    if (ready[0].revents != 0) out.Drain(output.out);
    if (ready[1].revents != 0) err.Drain(output.err);
  }
  // Fails with ECHILD once the child has ended.
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return output;
}

}  // namespace thimble
