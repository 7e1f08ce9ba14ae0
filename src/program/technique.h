// Technique: a change to the graphs of a whole program before its residents are placed: how batches
// are split, what forward graphs compute, what is stored and how. Each has a folder here and a line
// in techniques.cc. (A change to a single plan is a pass: plan/pass.h.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/base/result.h"
#include "thimble/grad/update_spec.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/pass.h"
#include "thimble/plan/program.h"
#include "thimble/program/lever.h"
#include "thimble/tensor/batch_shape.h"

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
  // The option that requests it. nullptr: always applied, unless it is left out.
  virtual const Lever* lever() const { return nullptr; }

  // A technique overrides one of these. `value` is the value of its lever. The result describes in
  // one line what was done; empty: nothing.

  // Splits the samples of a batch of this shape. On entry, `parts` is the whole batch.
  virtual std::string CutBatch(const std::string& /*value*/, const BatchShape& /*shape*/,
                               NearlyEqualParts& /*parts*/) const {
    return {};
  }
  virtual Result<std::string> ChangeForward(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                            ForwardGraph& /*forward*/) const {
    return std::string();
  }
  // Changes how gradients become an update. `in_parts`: batches are trained in parts.
  virtual Result<std::string> ChangeUpdate(const std::string& /*value*/, bool /*in_parts*/,
                                           UpdateSpec& /*update*/) const {
    return std::string();
  }
  // Changes all graphs of the program, with backward and update. `update` is as all techniques have
  // changed it.
  virtual Result<std::string> ChangeProgram(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                            const UpdateSpec& /*update*/,
                                            std::vector<NamedGraph>& /*graphs*/) const {
    return std::string();
  }
};

// The record of what the technique did, for plan.json and reports.
TechniqueRecord RecordOf(const Technique& technique, std::string done);

}  // namespace thimble
