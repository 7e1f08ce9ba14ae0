#include "thimble/program/techniques.h"

#include "thimble/plan/pipeline.h"
#include "thimble/program/factored_moment/factored_moment.h"
#include "thimble/program/fold_norms/fold_norms.h"
#include "thimble/program/fuse_conv_add/fuse_conv_add.h"
#include "thimble/program/fuse_norm_relu/fuse_norm_relu.h"
#include "thimble/program/ghost_batch_norm/ghost_batch_norm.h"
#include "thimble/program/microbatch/microbatch.h"
#include "thimble/program/plan_levers.h"
#include "thimble/program/precision/precision.h"
#include "thimble/program/sparsity/sparsity.h"
#include "thimble/program/update_in_backward/update_in_backward.h"

namespace thimble {
namespace {

std::vector<std::unique_ptr<const Technique>>& TechniqueTable() {
  static auto* techniques = [] {
    auto* table = new std::vector<std::unique_ptr<const Technique>>;
    table->push_back(MakeMicrobatch());
    table->push_back(MakeGhostBatchNorm());
    table->push_back(MakeFuseNormRelu());
    table->push_back(MakeFuseConvAdd());
    table->push_back(MakePrecision());
    table->push_back(MakeStore());
    table->push_back(MakeStochasticRounding());
    table->push_back(MakeErrorFeedback());
    table->push_back(MakeSecondMoment());
    table->push_back(MakeUpdateInBackward());
    table->push_back(MakeSparseMethod());
    table->push_back(MakeSparseLayers());
    table->push_back(MakeRewireEvery());
    table->push_back(MakeSparsity());   // stores what the others decided
    table->push_back(MakeFoldNorms());  // the last: changes the ops of all others
    return table;
  }();
  return *techniques;
}

}  // namespace

TechniqueRecord RecordOf(const Technique& technique, std::string done) {
  const TechniqueInfo info = technique.Info();
  return {.name = std::string(info.name),
          .exactness = std::string(Name(info.exactness)),
          .what = std::string(info.what),
          .done = std::move(done)};
}

const std::vector<std::unique_ptr<const Technique>>& Techniques() { return TechniqueTable(); }

std::vector<TechniqueInfo> AlwaysDone() {
  std::vector<TechniqueInfo> done;
  for (const auto& technique : Techniques()) {
    if (technique->lever() == nullptr) done.push_back(technique->Info());
  }
  for (const PassInfo& pass : OptionalPasses()) {
    done.push_back({pass.name, pass.exactness, pass.what, pass.saves_bytes});
  }
  return done;
}

std::vector<const Lever*> Levers() {
  std::vector<const Lever*> levers;
  for (const auto& technique : Techniques()) {
    if (technique->lever() != nullptr) levers.push_back(technique->lever());
  }
  for (const Lever& lever : PlanLevers()) levers.push_back(&lever);
  return levers;
}

const Lever* FindLever(std::string_view name) {
  for (const Lever* lever : Levers()) {
    if (lever->name == name) return lever;
  }
  return nullptr;
}

AddedTechnique::AddedTechnique(std::unique_ptr<const Technique> technique) {
  TechniqueTable().push_back(std::move(technique));
}
AddedTechnique::~AddedTechnique() { TechniqueTable().pop_back(); }

}  // namespace thimble
