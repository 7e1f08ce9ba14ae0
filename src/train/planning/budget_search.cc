#include "thimble/train/planning/budget_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "thimble/base/byte_size.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/allowed.h"
#include "thimble/train/options/options.h"
#include "thimble/train/planning/budget_advice.h"
#include "thimble/train/planning/lever_offer.h"
#include "thimble/train/planning/planning_memory.h"
#include "thimble/train/step_time/op_times_file.h"

namespace thimble {
namespace {

// A step of a lever, as a place in the line of all steps.
struct LeverChange {
  const Lever* lever = nullptr;
  LeverStep step;
  Exactness exactness = Exactness::kSameBits;
};

std::vector<LeverStep> StepsOf(const Lever& lever, const TrainConfig& config) {
  const LeverSetting setting = SettingOf(lever, config);
  if (lever.budget_steps) return lever.budget_steps(setting);
  if (!lever.worth_trying || setting.value != lever.plain) return {};
  const std::vector<std::string> values = lever.worth_trying(setting);
  return values.empty() ? std::vector<LeverStep>{} : std::vector<LeverStep>{{values.front()}};
}

// Smaller differences of predicted times are chance.
bool IsSlower(const PlanSize& a, const PlanSize& b) {
  constexpr double kChance = 1.03;
  if (a.step_seconds > 0 && b.step_seconds > 0) return a.step_seconds > kChance * b.step_seconds;
  return a.step_flops > b.step_flops;
}

void Ask(const LeverChange& step, TrainConfig& config) {
  LeverOffer{step.lever, step.step.value}.Ask(config);
}

class BudgetSearch {
 public:
  BudgetSearch(const TrainConfig& config, const PlanSizer& sizer)
      : config_(config), sizer_(sizer) {}

  Result<BudgetChoice> Run(const Allowed& allowed) {
    THIMBLE_TRY(FindSteps(allowed));
    THIMBLE_ASSIGN_OR_RETURN(const size_t needed, FewestSteps());
    if (needed > changing_.size()) return DoesNotFitAtAll();
    chosen_.assign(changing_.begin(), changing_.begin() + static_cast<int64_t>(needed));
    if (needed < changing_.size()) beyond_ = &changing_[needed];
    THIMBLE_TRY(Refine(allowed));
    THIMBLE_TRY(Relax());
    return Finish();
  }

 private:
  // The steps that are allowed and can be planned: those with the same bits, and the others in
  // their order.
  Result<void> FindSteps(const Allowed& allowed) {
    for (const Lever* lever : Levers()) {
      bool is_known = false;  // whether the lever can be planned
      for (LeverStep& step : StepsOf(*lever, config_)) {
        TrainConfig with = config_;
        LeverChange tried{lever, std::move(step)};
        Ask(tried, with);
        THIMBLE_ASSIGN_OR_RETURN(const std::string text, sizer_.ExactnessOf(*lever, with));
        tried.exactness = ClassIn(text);
        // Small parts cost nothing if the network has no batch norm, for example.
        if (tried.exactness != Exactness::kLossy) tried.step.lost_points = 0;
        if (!allowed.Permits(*lever, tried.step.value, tried.exactness)) continue;
        // The network may have nothing to make sparse, or kernels too little scratch.
        const bool must_try = !is_known || tried.exactness == Exactness::kSameBits;
        if (must_try && !sizer_.CanPlan(with)) break;
        is_known = true;
        (tried.exactness == Exactness::kSameBits ? same_bits_ : changing_)
            .push_back(std::move(tried));
      }
    }
    std::ranges::stable_sort(changing_, {}, [](const LeverChange& step) {
      return std::pair(step.exactness, step.step.lost_points);
    });
    return {};
  }

  // For the smallest arena with these steps and everything that keeps the same bits.
  TrainConfig SmallestConfig(std::span<const LeverChange> steps, int threads = 1) const {
    TrainConfig config = config_;
    config.threads = threads;
    for (const LeverChange& step : steps) Ask(step, config);
    for (const LeverChange& step : same_bits_) Ask(step, config);
    return config;
  }
  Result<int64_t> Smallest(std::span<const LeverChange> steps) const {
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer_.Of(SmallestConfig(steps)));
    return size.arena_bytes;
  }
  Result<bool> Fit(std::span<const LeverChange> steps, int threads = 1) const {
    return sizer_.Fits(SmallestConfig(steps, threads), config_.budget_bytes);
  }

  // How many steps of the line must be taken; more than there are if all of them are too few.
  Result<size_t> FewestSteps() const {
    size_t too_few = 0;  // fewer are known to be too few
    size_t enough = changing_.size() + 1;
    while (too_few < enough) {
      const size_t tried = too_few + (enough - too_few) / 2;
      THIMBLE_ASSIGN_OR_RETURN(const bool fits, Fit(std::span(changing_).first(tried)));
      if (fits) {
        enough = tried;
      } else {
        too_few = tried + 1;
      }
    }
    return enough;
  }

  // Replaces the value of a lever that has values between those of its steps by the mildest one
  // that is enough. Leaves room for two threads, whatever the machine has: a step in half the time
  // is worth more than a hundredth of the weights.
  Result<void> Refine(const Allowed& allowed) {
    const auto last = std::find_if(chosen_.rbegin(), chosen_.rend(),
                                   [](const LeverChange& s) { return bool{s.lever->between}; });
    if (last == chosen_.rend()) return {};
    const LeverChange strongest = *last;
    std::erase_if(chosen_, [&](const LeverChange& s) { return s.lever == strongest.lever; });
    chosen_.push_back(strongest);
    LeverStep& tried = chosen_.back().step;
    const auto is_enough = [&](const LeverStep& step) {
      tried = step;
      return Fit(chosen_, /*threads=*/2);
    };
    std::vector<LeverStep> steps = {{SettingOf(*strongest.lever, config_).value}};
    for (const LeverChange& step : changing_) {
      if (step.lever != strongest.lever) continue;
      steps.push_back(step.step);
      if (step.step.value == strongest.step.value) break;
    }
    while (steps.size() > 1) {
      THIMBLE_ASSIGN_OR_RETURN(const bool fits, is_enough(steps[steps.size() - 2]));
      if (!fits) break;
      steps.pop_back();
    }
    LeverStep enough = steps.back();
    LeverStep too_mild = steps.size() > 1 ? steps[steps.size() - 2] : enough;
    while (const auto middle = strongest.lever->between(too_mild, enough)) {
      if (!allowed.Permits(*strongest.lever, middle->value, strongest.exactness)) break;
      THIMBLE_ASSIGN_OR_RETURN(const bool fits, is_enough(*middle));
      (fits ? enough : too_mild) = *middle;
    }
    tried = enough;
    if (steps.size() == 1) chosen_.pop_back();  // not needed at all
    return {};
  }

  // Takes back what the later steps made unnecessary, the costliest first. Only the last step of a
  // lever counts.
  Result<void> Relax() {
    for (size_t i = chosen_.size(); i-- > 0;) {
      if (chosen_[i].lever->between) continue;  // refined
      std::vector<LeverChange> fewer = chosen_;
      fewer.erase(fewer.begin() + static_cast<int64_t>(i));
      THIMBLE_ASSIGN_OR_RETURN(const bool fits, Fit(fewer));
      if (fits) chosen_ = std::move(fewer);
    }
    // Steps of a lever that a later one of the same lever replaces.
    for (size_t i = chosen_.size(); i-- > 0;) {
      const auto later =
          std::find_if(chosen_.begin() + static_cast<int64_t>(i) + 1, chosen_.end(),
                       [&](const LeverChange& s) { return s.lever == chosen_[i].lever; });
      if (later != chosen_.end()) chosen_.erase(chosen_.begin() + static_cast<int64_t>(i));
    }
    return {};
  }

  // With these levers that keep the same bits; nullopt if it does not fit.
  Result<std::optional<PlanSize>> SizeWith(const TrainConfig& config) const {
    const Result<PlanSize> size = sizer_.Of(config);
    if (!size.ok() && size.error().kind != ErrorKind::kDoesNotFit) return size.error();
    if (!size.ok() || size->arena_bytes > config_.budget_bytes) return std::optional<PlanSize>();
    return std::optional(*size);
  }

  // Spends what is left of the budget: as many threads as possible, then as little arithmetic as
  // possible, then as few levers.
  Result<BudgetChoice> Finish() {
    BudgetChoice choice{.config = config_};
    for (const LeverChange& step : chosen_) Ask(step, choice.config);
    std::vector<LeverChange> used;
    for (const LeverChange& step : same_bits_) {
      if (!used.empty() && used.back().lever == step.lever) used.pop_back();
      used.push_back(step);
      if (step.lever->within_bytes) {
        used.back().step.value = step.lever->within_bytes(config_.budget_bytes);
      }
    }
    for (const LeverChange& step : used) Ask(step, choice.config);
    THIMBLE_ASSIGN_OR_RETURN(PlanSize size, FindThreads(used, choice));
    for (size_t i = used.size(); i-- > 0;) {
      THIMBLE_TRY(Ease(used[i], choice, size));
    }
    std::erase_if(used,
                  [](const LeverChange& step) { return step.step.value == step.lever->plain; });
    choice.arena_bytes = size.arena_bytes;
    choice.step_seconds = size.step_seconds;
    THIMBLE_ASSIGN_OR_RETURN(choice.smallest_bytes, Smallest(chosen_));
    if (beyond_ != nullptr)
      choice.beyond = LeverOffer{beyond_->lever, beyond_->step.value}.option();
    used.insert(used.begin(), chosen_.begin(), chosen_.end());
    std::vector<TrainConfig> compared = {SmallestConfig(chosen_)};
    for (const LeverChange& step : used) compared.push_back(Without(*step.lever));
    sizer_.Prepare(compared);
    for (const LeverChange& step : used) THIMBLE_TRY(Describe(step, choice));
    return choice;
  }

  // The smallest arena of the chosen steps, but with the plain value of this lever.
  TrainConfig Without(const Lever& lever) const {
    TrainConfig config = SmallestConfig(chosen_);
    LeverOffer{&lever, lever.plain}.Ask(config);
    return config;
  }

  // Takes a lever back to its plain value or, if that is slower or does not fit, to a milder one.
  Result<void> Ease(LeverChange& used, BudgetChoice& choice, PlanSize& size) const {
    const auto try_value = [&](const std::string& value, bool even_if_slower) -> Result<bool> {
      TrainConfig eased = choice.config;
      LeverOffer{used.lever, value}.Ask(eased);
      THIMBLE_ASSIGN_OR_RETURN(const auto with, SizeWith(eased));
      if (!with || (!even_if_slower && IsSlower(*with, size))) return false;
      choice.config = std::move(eased);
      size = *with;
      used.step.value = value;
      return true;
    };
    THIMBLE_ASSIGN_OR_RETURN(const bool is_plain, try_value(used.lever->plain, false));
    if (is_plain) return {};
    for (const LeverChange& step : same_bits_) {
      if (step.lever != used.lever || step.lever->within_bytes) continue;
      if (step.step.value == used.step.value) return {};
      // Arithmetic alone does not show that a milder value is faster.
      THIMBLE_ASSIGN_OR_RETURN(
          const bool taken, try_value(step.step.value, /*even_if_slower=*/size.step_seconds <= 0));
      if (taken) return {};
    }
    return {};
  }

  static int Threads(const BudgetChoice& choice) {
    return DeviceOf(choice.config) == DeviceKind::kCpu ? ResolvedThreads(choice.config) : 1;
  }

  // The largest number of threads that fits; if the limit cannot be met with any, the smallest
  // arena.
  Result<PlanSize> FindThreads(std::vector<LeverChange>& used, BudgetChoice& choice) const {
    const int most = Threads(choice);
    for (int threads = most; threads >= 1; --threads) {
      if (threads < most) choice.config.threads = choice.threads = threads;
      THIMBLE_ASSIGN_OR_RETURN(const auto size, SizeWith(choice.config));
      if (size) return *size;
    }
    for (size_t i = 0; i < used.size(); ++i) {
      for (const LeverChange& step : same_bits_) {
        if (step.lever == used[i].lever) used[i] = step;
      }
      Ask(used[i], choice.config);
    }
    return sizer_.Of(choice.config);
  }

  Result<void> Describe(const LeverChange& step, BudgetChoice& choice) const {
    const LeverOffer offer{step.lever, step.step.value};
    THIMBLE_ASSIGN_OR_RETURN(std::string exactness, sizer_.ExactnessOf(*step.lever, choice.config));
    // Compared with one thread, as in the search: then most of these plans are known.
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize smallest, sizer_.Of(SmallestConfig(chosen_)));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize larger, sizer_.Of(Without(*step.lever)));
    choice.levers.push_back({offer.option(), std::move(exactness), step.step.lost_points,
                             larger.arena_bytes - smallest.arena_bytes,
                             (smallest.step_seconds - larger.step_seconds) / Threads(choice)});
    return {};
  }

  Result<BudgetChoice> DoesNotFitAtAll() const {
    THIMBLE_ASSIGN_OR_RETURN(const int64_t smallest, Smallest(changing_));
    return DoesNotFit(fmt::format(
        "does not fit: the smallest arena with what is allowed has {} ({} bytes), the budget of {} "
        "is exceeded by {}",
        FormatBytes(smallest), smallest, FormatBytes(config_.budget_bytes),
        FormatBytes(smallest - config_.budget_bytes)));
  }

  const TrainConfig& config_;
  const PlanSizer& sizer_;
  std::vector<LeverChange> same_bits_;
  std::vector<LeverChange> changing_;  // the line
  std::vector<LeverChange> chosen_;
  const LeverChange* beyond_ = nullptr;  // the first step of the line that was not needed
};

}  // namespace

Exactness ClassIn(std::string_view exactness) {
  for (const Exactness named : {Exactness::kLossy, Exactness::kEqual}) {
    if (exactness.starts_with(Name(named))) return named;
  }
  return Exactness::kSameBits;
}

std::string BudgetChoice::options() const {
  std::string text;
  for (const ChosenLever& lever : levers) text += (text.empty() ? "" : " ") + lever.option;
  if (threads > 0) text += fmt::format(" --threads {}", threads);
  return text;
}

double BudgetChoice::lost_points() const {
  double points = 0;
  for (const ChosenLever& lever : levers) points += lever.lost_points;
  return points;
}

Exactness BudgetChoice::exactness() const {
  Exactness least = Exactness::kSameBits;
  for (const ChosenLever& lever : levers) least = std::max(least, ClassIn(lever.exactness));
  return least;
}

std::string ToString(const BudgetChoice& choice) {
  if (choice.levers.empty()) return "";
  const Exactness least = choice.exactness();
  std::string text =
      fmt::format("for the budget of {}: {} ({}", FormatBytes(choice.config.budget_bytes),
                  choice.options(), Name(least));
  if (least == Exactness::kLossy) {
    text += fmt::format(", expected to cost {:.2f} points of accuracy", choice.lost_points());
  }
  text += fmt::format("), arena {}", FormatBytes(choice.arena_bytes));
  if (choice.step_seconds > 0)
    text += ", predicted " + FormatSeconds(choice.step_seconds) + " per step";
  return text;
}

namespace {

Result<BudgetChoice> ChooseBySize(const TrainConfig& config, const PlanSizer& sizer) {
  THIMBLE_ASSIGN_OR_RETURN(const Allowed allowed, Allowed::Parse(config.allow));
  if (config.budget_bytes <= 0 || allowed.nothing()) return BudgetChoice{.config = config};
  const Result<PlanSize> asked = sizer.Of(config);
  if (!asked.ok() && asked.error().kind != ErrorKind::kDoesNotFit) return asked.error();
  if (asked.ok() && asked->arena_bytes <= config.budget_bytes) {
    return BudgetChoice{
        .config = config, .arena_bytes = asked->arena_bytes, .step_seconds = asked->step_seconds};
  }
  return BudgetSearch(config, sizer).Run(allowed);
}

}  // namespace

// If sizes are estimates, the choice is planned with all its shapes; what it exceeds the budget by
// is taken from the budget of another search.
Result<BudgetChoice> ChooseForBudget(const TrainConfig& config, const PlanSizer& sizer) {
  Result<BudgetChoice> choice = ChooseBySize(config, sizer);
  if (!sizer.is_estimate() || config.budget_bytes <= 0) return choice;
  TrainConfig tried = config;
  constexpr int kMostSearches = 4;
  for (int search = 0; search < kMostSearches && choice.ok(); ++search) {
    choice->config.budget_bytes = config.budget_bytes;
    THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                             MakeTrainingProgram(choice->config, sizer.task(), sizer.ops()));
    choice->arena_bytes = static_cast<int64_t>(planned.program.arena_bytes);
    if (choice->arena_bytes <= config.budget_bytes) return choice;
    tried.budget_bytes -= choice->arena_bytes - config.budget_bytes;
    choice = ChooseBySize(tried, sizer);
  }
  return choice;
}

Result<BudgetChoice> ChooseOrAdvise(const TrainConfig& config, const PlanSizer& sizer) {
  Result<BudgetChoice> choice = ChooseForBudget(config, sizer);
  TrainConfig free = config;
  free.allow = Name(Exactness::kLossy);
  if (choice.ok() || choice.error().kind != ErrorKind::kDoesNotFit || config.allow == free.allow) {
    return choice;
  }
  const Result<BudgetChoice> freely = ChooseForBudget(free, sizer);
  if (!freely.ok()) return choice;
  return DoesNotFit(fmt::format("{}; --allow {} would choose {} ({})", choice.error().message,
                                free.allow, freely->options(), FormatBytes(freely->arena_bytes)));
}

Result<BudgetedProgram> PlanWithinBudget(const TrainConfig& config, const TaskPtr& task,
                                         const OpRegistry& ops) {
  THIMBLE_TRY(CheckPlanningMemory(*task, ops, ReadMemoryLimits()));
  BudgetedProgram planned;
  const PlanSizer sizer(task, ops, LoadOpTimes(config));
  THIMBLE_ASSIGN_OR_RETURN(planned.choice, ChooseOrAdvise(config, sizer));
  THIMBLE_ASSIGN_OR_RETURN(planned.program, MakeTrainingProgram(planned.choice.config, task, ops));
  THIMBLE_TRY(CheckTrainingBudget(planned.choice.config, planned.program, ops));
  return planned;
}

}  // namespace thimble
