// StartThread: a thread, or why the system gives none.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "thimble/base/result.h"

namespace thimble {

// Starts a thread that runs `body`. kFailed where the system gives none; the message says what
// could not be started, how many threads this process has, and then `advice`:
//   cannot start worker thread 3 of 7: Resource temporarily unavailable; this process has 3 threads
//   and was given no more; try --threads 3
Result<std::thread> StartThread(std::string_view what, std::string_view advice,
                                std::function<void()> body);

// Threads that this process has now; 0 where the system does not tell.
int NumThreads();

}  // namespace thimble
