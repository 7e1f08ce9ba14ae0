// Technique: something that is done to the graphs of a whole program before its residents are laid
// out: how batches are cut, what forward graphs compute, what is stored and how. One folder here
// and one line in techniques.cc. (What is decided for one plan alone is a pass: plan/pass.h.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/pass.h"
#include "thimble/plan/program.h"
#include "thimble/program/lever.h"

namespace thimble {

struct TechniqueInfo {
  std::string_view name;  // for --without, plan.json and reports
  Exactness exactness = Exactness::kSameBits;
  std::string_view what;  // one line for people
  bool saves_bytes = true;
};

// A forward graph before it is differentiated.
struct ForwardGraph {
  Graph graph = {};
  int64_t samples = 0;
  bool training = false;
};

class Technique {
 public:
  virtual ~Technique() = default;
  virtual TechniqueInfo Info() const = 0;
  // How users ask for it. Where there is none, it is done always, unless it is left out.
  virtual const Lever* lever() const { return nullptr; }

  // A technique does what it has to do in one of these. `value` is its lever's. Each says in one
  // line what it did; nothing where it had nothing to do.

  // How a batch is trained: `parts` begins as the batch as a whole.
  virtual std::string CutBatch(const std::string& /*value*/, NearlyEqualParts& /*parts*/) const {
    return {};
  }
  virtual Result<std::string> ChangeForward(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                            ForwardGraph& /*forward*/) const {
    return std::string();
  }
  // All graphs of the program, with backward and update.
  virtual Result<std::string> ChangeProgram(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                            std::vector<NamedGraph>& /*graphs*/) const {
    return std::string();
  }
};

// What the technique did, as reports have it.
TechniqueRecord RecordOf(const Technique& technique, std::string done);

}  // namespace thimble
