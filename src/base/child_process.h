// A program that is run beside this one, for work whose memory should not be ours.
#pragma once

#include <string>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

struct ChildOutput {
  std::string out;  // what it wrote to standard output
  std::string err;  // and to standard error
};

// Runs the program at `path` with these arguments and an empty standard input, and waits for its
// end. Nothing of this process is copied for it, and the kernel does not count its memory as that
// of a child: whoever measures this process measures this process alone. For that, SIGCHLD is
// ignored meanwhile, and there is no exit status: a program says by what it writes whether it went
// well. kFailed where it cannot be started.
Result<ChildOutput> RunChild(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace thimble
