#include "thimble/report/trace_json.h"

#include <fmt/format.h>

#include <cmath>

#include "thimble/report/categories_json.h"

namespace thimble {
namespace {

// Tracks, from the top down.
enum class Track { kTrainingSteps = 1, kPhases = 2, kOps = 3 };

// Whole nanoseconds, so that times add up; the format uses microseconds.
int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }
double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

// The events, one per line, in order of their start.
class Trace {
 public:
  void AddName(const char* what, int track, const std::string& name) {
    Add({{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", track}, {"args", {{"name", name}}}});
  }
  void AddSpan(Track track, const std::string& name, int64_t begin, int64_t duration, Json args) {
    Add({{"ph", "X"},
         {"name", name},
         {"cat", Kind(track)},
         {"pid", 1},
         {"tid", static_cast<int>(track)},
         {"ts", Microseconds(begin)},
         {"dur", Microseconds(duration)},
         {"args", std::move(args)}});
  }
  void AddCounter(const char* name, int64_t time, Json series) {
    Add({{"ph", "C"},
         {"name", name},
         {"pid", 1},
         {"ts", Microseconds(time)},
         {"args", std::move(series)}});
  }
  std::string Text() const {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  static const char* Kind(Track track) {
    if (track == Track::kTrainingSteps) return "training step";
    return track == Track::kPhases ? "phase" : "op";
  }
  void Add(const Json& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event.Dump();
  }

  std::string events_;
};

void NameTracks(const Profile& profile, Trace& trace) {
  trace.AddName("process_name", 0,
                fmt::format("thimble: {}, batch {} on {}", profile.model, profile.batch,
                            profile.device_name));
  trace.AddName("thread_name", static_cast<int>(Track::kTrainingSteps), "training steps");
  trace.AddName("thread_name", static_cast<int>(Track::kPhases), "phases");
  trace.AddName("thread_name", static_cast<int>(Track::kOps), "ops");
}

// Total nanoseconds of the consecutive steps from `first` that belong to the same phase.
int64_t PhaseDuration(const std::vector<StepRecord>& steps, const std::vector<double>& seconds,
                      size_t first) {
  int64_t duration = 0;
  for (size_t i = first; i < steps.size() && steps[i].phase == steps[first].phase; ++i) {
    duration += Nanoseconds(seconds[i]);
  }
  return duration;
}

void AddMemory(const CategoryBytes& bytes, int64_t time, Trace& trace) {
  trace.AddCounter("memory by category (bytes)", time, CategoriesJson(bytes));
  trace.AddCounter("memory in use (bytes)", time, {{"bytes", Total(bytes)}});
}

// Adds one run that starts at `begin`; returns the time when it ends.
int64_t AddRun(const Profile& profile, const MemoryAccount& account, size_t run, int64_t begin,
               Trace& trace) {
  const std::vector<StepRecord>& steps = profile.record.steps;
  const std::vector<double>& seconds = profile.timed_runs[run];
  int64_t run_duration = 0;
  for (const double of_step : seconds) run_duration += Nanoseconds(of_step);
  // For a step in parts the trace shows only the first: the others do the same.
  const bool whole = profile.others.empty();
  trace.AddSpan(Track::kTrainingSteps,
                whole ? fmt::format("training step {}", run) : profile.record.name, begin,
                run_duration, {{profile.unit, profile.batch}});
  int64_t time = begin;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepRecord& step = steps[i];
    if (i == 0 || step.phase != steps[i - 1].phase) {
      trace.AddSpan(Track::kPhases, step.phase, time, PhaseDuration(steps, seconds, i),
                    Json::EmptyObject());
    }
    AddMemory(account.at_step[i], time, trace);
    trace.AddSpan(Track::kOps, fmt::format("{} {}", step.op, step.layer), time,
                  Nanoseconds(seconds[i]),
                  {{"step", i},
                   {"phase", step.phase},
                   {"kernel", step.kernel},
                   {"flops", step.flops},
                   {"moved_bytes", step.moved_bytes}});
    time += Nanoseconds(seconds[i]);
  }
  return time;
}

}  // namespace

std::string TraceJson(const Profile& profile) {
  Trace trace;
  NameTracks(profile, trace);
  const MemoryAccount account = MeasuredAccount(profile);
  int64_t time = 0;
  for (size_t run = 0; run < profile.timed_runs.size(); ++run) {
    time = AddRun(profile, account, run, time, trace);
  }
  return trace.Text();
}

}  // namespace thimble
