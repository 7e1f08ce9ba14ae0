// A profile as a trace file: the Chrome trace event format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open.
#pragma once

#include <string>

#include "thimble/train/profile/profile.h"

namespace thimble {

// The timed runs one after the other, from time 0, without gaps between steps. Three tracks:
// training steps, their phases, and ops. Two counters, which change when an op starts: measured
// bytes alive by category, and in total.
std::string TraceJson(const Profile& profile);

}  // namespace thimble
