// StartThread: starts a thread, or says why the system refuses one.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "thimble/base/result.h"

namespace thimble {

// Starts a thread that runs `body`. kFailed if the system refuses; the message says what could not
// be started, how many threads this process has, and then `advice`:
//   cannot start worker thread 3 of 7: Resource temporarily unavailable; this process has 3 threads
//   and may start no more; try --threads 3
Result<std::thread> StartThread(std::string_view what, std::string_view advice,
                                std::function<void()> body);

// Number of threads in this process; 0 if unknown.
int NumThreads();

}  // namespace thimble
