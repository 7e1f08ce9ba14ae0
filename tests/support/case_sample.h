// Which of a test's many fixed cases run: all of them or, if the environment variable
// THIMBLE_EVERY_NTH_CASE is N, the first, the N+1st and so on. For sanitizers, which are slow.
#pragma once

namespace thimble {

// Counts the cases of the running test. Whether the next one runs.
bool NextCaseRuns();

}  // namespace thimble
