// PlanPass: one decision of the planner. A technique is one pass and one line in pipeline.cc.
#pragma once

#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/draft.h"

namespace thimble {

// How a run with the technique relates to the plain run.
enum class Exactness {
  kSameBits,  // bit for bit, per SIMD target, for any number of threads
  kEqual,     // equal up to rounding: additions in another order
  kLossy,     // measured, see the technique's page
};
std::string_view Name(Exactness exactness);

// What a pass decides, as far as other passes and the pipeline depend on it.
enum class Decides {
  kOrder,    // in which order nodes run
  kStorage,  // which values share a buffer
  kOffsets,  // the offsets of buffers
  kOther,
};

struct PassInfo {
  std::string_view name;
  Exactness exactness = Exactness::kSameBits;
  std::string_view what;  // one line, shown to users
  Decides decides = Decides::kOther;
  bool required = false;   // not a technique: planning is impossible without it
  bool on_demand = false;  // does nothing unless the options request it
  bool saves_bytes = true;
};

// Whether a pass that is not left out by the options decides this.
bool IsDecided(Decides what, const PlanOptions& options);

class PlanPass {
 public:
  virtual ~PlanPass() = default;
  virtual PassInfo Info() const = 0;
  // Changes the draft, which is valid before and after. Returns one line that says what it did;
  // empty if it did nothing.
  virtual Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                                  const PlanOptions& options) const = 0;
  // Whether, with these options, the pass already compares final arenas. Then the pipeline does not
  // try planning with and without shared buffers.
  virtual bool ComparesArenas(const PlanOptions& /*options*/) const { return false; }
};

}  // namespace thimble
