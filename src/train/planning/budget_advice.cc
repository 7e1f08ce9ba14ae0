#include "thimble/train/planning/budget_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "thimble/base/byte_size.h"
#include "thimble/base/function_ref.h"
#include "thimble/base/nearly_equal_parts.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/usual_settings.h"
#include "thimble/train/planning/lever_offer.h"

namespace thimble {
namespace {

// The largest number from 1 to `most` that fits; 0 if none does. Binary search: requires that
// numbers above one that does not fit do not fit either.
Result<int64_t> LargestThatFits(int64_t most, FunctionRef<Result<bool>(int64_t)> fits) {
  int64_t known = 0;
  int64_t too_large = most + 1;
  while (known + 1 < too_large) {
    const int64_t tried = known + (too_large - known) / 2;
    THIMBLE_ASSIGN_OR_RETURN(const bool within, fits(tried));
    (within ? known : too_large) = tried;
  }
  return known;
}

// Samples of the largest part of a full or last batch.
int64_t LargestPart(const TrainConfig& config, int64_t train_images) {
  const int64_t microbatch = config.microbatch == 0 ? config.batch : config.microbatch;
  const int64_t last = train_images % config.batch;
  return std::max(CutNearlyEqually(config.batch, microbatch).LargestSize(),
                  CutNearlyEqually(last, microbatch).LargestSize());
}

bool InParts(const TrainConfig& config) {
  return config.microbatch > 0 && config.microbatch < config.batch;
}

// Whether planning succeeded within the budget. kDoesNotFit counts as no: a limit for recompute may
// be unreachable. Other errors are returned.
Result<bool> IsWithin(const Result<int64_t>& arena_bytes, int64_t budget_bytes) {
  if (arena_bytes.ok()) return *arena_bytes <= budget_bytes;
  if (arena_bytes.error().kind == ErrorKind::kDoesNotFit) return false;
  return arena_bytes.error();
}

Result<int64_t> ArenaOf(const PlanSizer& sizer, const TrainConfig& config) {
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(config));
  return size.arena_bytes;
}

// The largest part that fits in plans of full batches: a good estimate for any data.
Result<int64_t> LargestPartWithin(const TrainConfig& config, int64_t most, const PlanSizer& sizer) {
  const PlanSizer full_batches(sizer.task()->InFullBatches(), sizer.ops());
  return LargestThatFits(most, [&](int64_t part) -> Result<bool> {
    TrainConfig tried = config;
    tried.batch = InParts(config) ? 2 * part : part;
    tried.microbatch = InParts(config) ? part : 0;
    return IsWithin(ArenaOf(full_batches, tried), config.budget_bytes);
  });
}

// The largest batch whose parts have at most `part` samples.
int64_t LargestBatchInParts(const TrainConfig& config, int64_t part) {
  if (!InParts(config)) return part;
  if (part >= config.microbatch) return config.batch;
  // k parts have more samples than k - 1 microbatches, otherwise there would be fewer parts.
  const int64_t most_parts = (config.microbatch - 1) / (config.microbatch - part);
  return std::max(most_parts * part, config.microbatch);
}

std::string Text(const Advice& advice) {
  return fmt::format("{} ({}{}{})", advice.options, FormatBytes(advice.arena_bytes),
                     advice.exactness.empty() ? "" : ", ", advice.exactness);
}

// Tries options one by one and, if none fits, all together.
class Adviser {
 public:
  using ArenaOf = std::function<Result<int64_t>(const TrainConfig&)>;

  Adviser(const TrainConfig& config, ArenaOf arena_of)
      : config_(config), arena_of_(std::move(arena_of)), all_{config, "", ""} {}

  const TrainConfig& all() const { return all_.config; }
  Result<bool> Fits(const TrainConfig& tried) const {
    return IsWithin(arena_of_(tried), config_.budget_bytes);
  }

  // `ask` changes a configuration as the options would.
  Result<void> Try(const std::string& options, FunctionRef<void(TrainConfig&)> ask,
                   const std::string& exactness = "") {
    Candidate alone{config_, options, exactness};
    ask(alone.config);
    ask(all_.config);
    all_.options += (all_.options.empty() ? "" : " ") + options;
    if (!exactness.empty()) all_.exactness = exactness;
    return Try(alone);
  }

  Result<BudgetAdvice> Finish() {
    if (advice_.fitting.empty() && num_tried_ > 1) THIMBLE_TRY(Try(all_));
    if (!advice_.fitting.empty()) advice_.smallest.reset();
    return std::move(advice_);
  }

 private:
  struct Candidate {
    TrainConfig config;
    std::string options;
    std::string exactness;
  };

  Result<void> Try(const Candidate& candidate) {
    const Result<int64_t> arena_bytes = arena_of_(candidate.config);
    THIMBLE_ASSIGN_OR_RETURN(const bool fits, IsWithin(arena_bytes, config_.budget_bytes));
    ++num_tried_;
    if (!arena_bytes.ok()) return {};
    Advice tried{candidate.options, *arena_bytes, candidate.exactness};
    if (fits) {
      advice_.fitting.push_back(std::move(tried));
    } else if (!advice_.smallest || *arena_bytes < advice_.smallest->arena_bytes) {
      advice_.smallest = std::move(tried);
    }
    return {};
  }

  const TrainConfig& config_;
  ArenaOf arena_of_;
  Candidate all_;
  BudgetAdvice advice_;
  int num_tried_ = 0;
};

Result<void> TryOffer(const LeverOffer& offer, const TrainConfig& config, const PlanSizer& sizer,
                      Adviser& adviser) {
  TrainConfig with = config;
  offer.Ask(with);
  THIMBLE_ASSIGN_OR_RETURN(std::string exactness, sizer.ExactnessOf(*offer.lever, with));
  if (exactness == Name(Exactness::kSameBits)) exactness.clear();
  return adviser.Try(
      offer.option(), [&](TrainConfig& asked) { offer.Ask(asked); }, exactness);
}

// The largest parts that fit.
Result<void> TryMicrobatch(const TrainConfig& config, const PlanSizer& sizer, Adviser& adviser) {
  const int64_t part = config.microbatch == 0 ? config.batch : config.microbatch;
  if (part == 1) return {};
  TrainConfig tried = config;
  THIMBLE_ASSIGN_OR_RETURN(const int64_t found, LargestThatFits(part - 1, [&](int64_t samples) {
                             tried.microbatch = samples;
                             return adviser.Fits(tried);
                           }));
  const int64_t microbatch = std::max<int64_t>(found, 1);
  return TryOffer({FindLever("microbatch"), std::to_string(microbatch)}, config, sizer, adviser);
}

// As in the table of savings: the first value of the lever that can be planned, alone and together
// with the options tried before.
std::optional<LeverOffer> FirstThatPlans(const Lever& lever, const TrainConfig& config,
                                         const Adviser& adviser) {
  return FirstOffer(lever, config, [&](const LeverOffer& offer) {
    TrainConfig alone = config;
    TrainConfig all = adviser.all();
    offer.Ask(alone);
    offer.Ask(all);
    return adviser.Fits(alone).ok() && adviser.Fits(all).ok();
  });
}

}  // namespace

std::string ToString(const BudgetAdvice& advice) {
  std::string text;
  for (const Advice& fitting : advice.fitting) {
    text += (text.empty() ? "would fit: " : ", ") + Text(fitting);
  }
  if (advice.smallest) {
    text = fmt::format("none of the options tried fits; the smallest: {}", Text(*advice.smallest));
  }
  return text;
}

Result<int64_t> LargestBatchWithin(const TrainConfig& config, const PlanSizer& sizer) {
  const int64_t lowest = std::max({int64_t{1}, config.microbatch, config.bn_group});
  // Batches of other numbers of tokens have other shapes, so no search can be exact.
  if (IsTranslation(config)) return 0;
  const int64_t images = sizer.task()->largest_batch();
  THIMBLE_ASSIGN_OR_RETURN(const int64_t estimate,
                           LargestPartWithin(config, LargestPart(config, images), sizer));
  // One more than should fit, so that the result does not depend on the estimate.
  int64_t part_limit = estimate + 1;
  TrainConfig tried = config;
  for (; tried.batch >= lowest; --tried.batch) {
    tried.batch = std::min(tried.batch, LargestBatchInParts(config, part_limit));
    if (tried.batch < lowest) break;
    const int64_t part = LargestPart(tried, images);
    // A batch of a single microbatch needs no sums of gradients, so it is planned in any case.
    if (InParts(tried) && part > part_limit) continue;
    THIMBLE_ASSIGN_OR_RETURN(const bool within,
                             IsWithin(ArenaOf(sizer, tried), config.budget_bytes));
    if (within) return tried.batch;
    part_limit = std::min(part_limit, part - 1);
  }
  return 0;
}

Result<BudgetAdvice> AdviseTraining(const TrainConfig& config, const PlanSizer& sizer) {
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize asked_size, sizer.Of(config));
  Adviser adviser(config, [&](const TrainConfig& tried) { return ArenaOf(sizer, tried); });
  THIMBLE_ASSIGN_OR_RETURN(const int64_t batch, LargestBatchWithin(config, sizer));
  if (batch > 0) {
    THIMBLE_TRY(adviser.Try(fmt::format("--batch {}", batch),
                            [=](TrainConfig& asked) { asked.batch = batch; }));
  }
  // For two levers the best value is known; it is not the first one worth trying.
  for (const Lever* lever : Levers()) {
    if (lever->name == "microbatch") {
      THIMBLE_TRY(TryMicrobatch(config, sizer, adviser));
    } else if (lever->name == "recompute") {
      const std::string best = asked_size.nodes <= kQuicklySearched ? "optimal" : "blocks";
      if (config.recompute == "optimal" || config.recompute == best) continue;
      THIMBLE_TRY(TryOffer({lever, best}, config, sizer, adviser));
    } else if (const auto offer = FirstThatPlans(*lever, config, adviser)) {
      THIMBLE_TRY(TryOffer(*offer, config, sizer, adviser));
    }
  }
  THIMBLE_ASSIGN_OR_RETURN(BudgetAdvice advice, adviser.Finish());
  advice.largest_batch = batch;
  return advice;
}

Result<BudgetAdvice> AdviseEvaluation(const TrainConfig& config, const TaskPtr& task, DataPart part,
                                      const OpRegistry& ops) {
  Adviser adviser(config, [&](const TrainConfig& tried) -> Result<int64_t> {
    THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                             MakeEvaluationProgram(tried, task, part, ops));
    return static_cast<int64_t>(planned.program.arena_bytes);
  });
  TrainConfig tried = config;
  const std::vector<BatchShape> shapes = task->EvaluateShapes(part, config.batch);
  const int64_t most = shapes.empty() ? config.batch : shapes.front().size();
  THIMBLE_ASSIGN_OR_RETURN(const int64_t found, LargestThatFits(most, [&](int64_t samples) {
                             tried.batch = samples;
                             return adviser.Fits(tried);
                           }));
  const int64_t batch = std::max<int64_t>(found, 1);
  if (batch < config.batch) {
    THIMBLE_TRY(adviser.Try(fmt::format("--batch {}", batch),
                            [=](TrainConfig& asked) { asked.batch = batch; }));
  }
  if (DeviceOf(config) == DeviceKind::kCpu && ResolvedThreads(config) > 1) {
    THIMBLE_TRY(adviser.Try("--threads 1", [](TrainConfig& asked) { asked.threads = 1; }));
  }
  for (const Lever* lever : Levers()) {
    if (lever->training_only) continue;
    const auto offer = FirstThatPlans(*lever, config, adviser);
    if (!offer) continue;
    THIMBLE_TRY(adviser.Try(offer->option(), [&](TrainConfig& asked) { offer->Ask(asked); }));
  }
  return adviser.Finish();
}

Result<void> CheckTrainingBudget(const TrainConfig& config, const TrainingProgram& planned,
                                 const OpRegistry& ops) {
  if (CheckBudget(planned.program, config.budget_bytes).ok()) return {};
  THIMBLE_ASSIGN_OR_RETURN(const BudgetAdvice advice,
                           AdviseTraining(config, PlanSizer(planned.task, ops)));
  return CheckBudget(planned.program, config.budget_bytes, ToString(advice));
}

Result<void> CheckEvaluationBudget(const TrainConfig& config, const TrainingProgram& planned,
                                   DataPart part, const OpRegistry& ops) {
  if (CheckBudget(planned.program, config.budget_bytes).ok()) return {};
  THIMBLE_ASSIGN_OR_RETURN(const BudgetAdvice advice,
                           AdviseEvaluation(config, planned.task, part, ops));
  return CheckBudget(planned.program, config.budget_bytes, ToString(advice));
}

}  // namespace thimble
