// Runs another program, for work whose memory should not count as this process's.
#pragma once

#include <string>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

struct ChildOutput {
  std::string out;  // what it wrote to standard output
  std::string err;  // what it wrote to standard error
};

// Runs the program at `path` with these arguments and an empty standard input, and waits until it
// ends. No memory of this process is copied, and the kernel does not add the child's memory to this
// process's statistics. For that, SIGCHLD is ignored during the call, so there is no exit status:
// the output must tell whether the program succeeded. If memory runs out meanwhile, the kernel ends
// the child rather than this process. kFailed if it cannot be started.
Result<ChildOutput> RunChild(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace thimble
