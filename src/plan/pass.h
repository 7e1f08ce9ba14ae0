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
  kEqual,     // equal to rounding: additions in another order
  kLossy,     // measured, see the technique's page
};
std::string_view Name(Exactness exactness);

// What of a draft a pass decides, where other passes and the pipeline have to know.
enum class Decides {
  kOrder,    // in which order nodes run
  kStorage,  // which values share a buffer
  kOffsets,  // where buffers lie
  kOther,
};

struct PassInfo {
  std::string_view name;
  Exactness exactness = Exactness::kSameBits;
  std::string_view what;  // one line for people
  Decides decides = Decides::kOther;
  bool required = false;   // no technique: without it there is no plan
  bool on_demand = false;  // does nothing unless the options ask for it
  bool saves_bytes = true;
};

// Whether some pass that these options do not leave out decides this.
bool IsDecided(Decides what, const PlanOptions& options);

class PlanPass {
 public:
  virtual ~PlanPass() = default;
  virtual PassInfo Info() const = 0;
  // Changes the draft, which is valid before and after. Returns what it did, in one line; an empty
  // line where there was nothing to do.
  virtual Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                                  const PlanOptions& options) const = 0;
  // Whether, with these options, the pass chooses by the arena that the later passes lead to. The
  // pipeline then has nothing to gain from trying whether shared buffers pay.
  virtual bool ComparesArenas(const PlanOptions& /*options*/) const { return false; }
};

}  // namespace thimble
