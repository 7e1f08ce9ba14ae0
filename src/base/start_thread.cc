#include "thimble/base/start_thread.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

namespace thimble {

int NumThreads() {
  std::error_code code;
  const std::filesystem::directory_iterator tasks("/proc/self/task", code);
  if (code) return 0;
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

Result<std::thread> StartThread(std::string_view what, std::string_view advice,
                                std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    const int threads = NumThreads();
    return Failed(
        fmt::format("cannot start {}: {}; this process has {} thread{} and may start no more; {}",
                    what, error.code().message(), threads, threads == 1 ? "" : "s", advice));
  }
}

}  // namespace thimble
