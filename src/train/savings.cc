#include "thimble/train/savings.h"

#include <fmt/format.h>

#include <functional>

#include "thimble/plan/pipeline.h"
#include "thimble/plan/program_record.h"

namespace thimble {
namespace {

// A technique that a user can ask for. One line here, and `thimble plan` says what it would save.
struct Offer {
  std::string name;
  std::string exactness;
  std::string what;
  std::function<void(TrainConfig&)> ask;
};

// Small enough to show what parts save; batch norm keeps statistics that are worth something.
constexpr int64_t kOfferedMicrobatch = 10;

Result<std::vector<Offer>> Offers(const TrainConfig& config, const ImageClassifier& model,
                                  const OpRegistry& ops) {
  std::vector<Offer> offers;
  if (config.batch > kOfferedMicrobatch) {
    THIMBLE_ASSIGN_OR_RETURN(const Network network, BuildNetwork(model, ops, 1, Mode::kTrain));
    offers.push_back({fmt::format("--microbatch {}", kOfferedMicrobatch),
                      MicrobatchExactness(network.graph, kOfferedMicrobatch),
                      "train a batch in parts, and update from the sum of their gradients",
                      [](TrainConfig& asked) { asked.microbatch = kOfferedMicrobatch; }});
  }
  offers.push_back({"--recompute blocks", std::string(Name(Exactness::kSameBits)),
                    "keep what passes between blocks, and rebuild the rest in backward",
                    [](TrainConfig& asked) { asked.recompute = "blocks"; }});
  offers.push_back({"--scratch 64KiB", std::string(Name(Exactness::kSameBits)),
                    "smaller packed panels per thread",
                    [](TrainConfig& asked) { asked.scratch_bytes = 64 << 10; }});
  return offers;
}

struct Size {
  int64_t arena_bytes = 0;
  int64_t step_flops = 0;
};

// Plans a configuration of one network, for full batches: smaller ones at the end of an epoch need
// no more. Passes that save nothing are left out.
class Sizer {
 public:
  Sizer(const ImageClassifier& model, const OpRegistry& ops) : model_(model), ops_(ops) {}

  Result<Size> Of(TrainConfig config) const {
    for (const PassInfo& pass : OptionalPasses()) {
      if (!pass.saves_bytes) config.without.emplace(pass.name);
    }
    THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                             MakeTrainingProgram(config, model_, /*counts=*/{}, ops_));
    return Size{static_cast<int64_t>(planned.program.arena_bytes),
                StepCost(planned.program, ops_).step_flops};
  }

 private:
  const ImageClassifier& model_;
  const OpRegistry& ops_;
};

Result<void> FindAlways(const Sizer& sizer, const TrainConfig& plain, Savings& savings) {
  std::vector<PassInfo> passes = OptionalPasses();
  std::erase_if(passes, [](const PassInfo& pass) { return !pass.saves_bytes; });
  TrainConfig bare = plain;
  for (const PassInfo& pass : passes) bare.without.emplace(pass.name);
  THIMBLE_ASSIGN_OR_RETURN(const Size without, sizer.Of(bare));
  savings.bare_arena_bytes = without.arena_bytes;
  for (const PassInfo& pass : passes) {
    TrainConfig alone = bare;
    alone.without.erase(std::string(pass.name));
    TrainConfig left_out = plain;
    left_out.without.emplace(pass.name);
    THIMBLE_ASSIGN_OR_RETURN(const Size size, sizer.Of(alone));
    THIMBLE_ASSIGN_OR_RETURN(const Size others, sizer.Of(left_out));
    savings.always.push_back({std::string(pass.name), std::string(Name(pass.exactness)),
                              std::string(pass.what), size.arena_bytes, size.step_flops,
                              others.arena_bytes});
  }
  return {};
}

Result<void> FindOffered(const Sizer& sizer, const std::vector<Offer>& offers,
                         const TrainConfig& plain, Savings& savings) {
  const Size plain_size{savings.plain_arena_bytes, savings.plain_step_flops};
  // With all offers but one, or with all.
  const auto without = [&](size_t left_out) {
    TrainConfig config = plain;
    for (size_t i = 0; i < offers.size(); ++i) {
      if (i != left_out) offers[i].ask(config);
    }
    return sizer.Of(config);
  };
  for (size_t i = 0; i < offers.size(); ++i) {
    TrainConfig alone = plain;
    offers[i].ask(alone);
    THIMBLE_ASSIGN_OR_RETURN(const Size size, sizer.Of(alone));
    // A single offer has no others.
    THIMBLE_ASSIGN_OR_RETURN(const Size others,
                             offers.size() > 1 ? without(i) : Result<Size>(plain_size));
    savings.offered.push_back({offers[i].name, offers[i].exactness, offers[i].what,
                               size.arena_bytes, size.step_flops, others.arena_bytes});
  }
  savings.together_arena_bytes = savings.offered.front().arena_bytes;
  if (offers.size() > 1) {
    THIMBLE_ASSIGN_OR_RETURN(const Size together, without(offers.size()));
    savings.together_arena_bytes = together.arena_bytes;
  }
  return {};
}

}  // namespace

Result<Savings> FindSavings(const TrainConfig& config, const ImageClassifier& model,
                            const OpRegistry& ops) {
  const TrainConfig plain = PlainConfig(config);
  const Sizer sizer(model, ops);
  Savings savings;
  THIMBLE_ASSIGN_OR_RETURN(const Size size, sizer.Of(plain));
  savings.plain_arena_bytes = size.arena_bytes;
  savings.plain_step_flops = size.step_flops;
  THIMBLE_TRY(FindAlways(sizer, plain, savings));
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<Offer> offers, Offers(plain, model, ops));
  THIMBLE_TRY(FindOffered(sizer, offers, plain, savings));
  return savings;
}

// As a whole, in the parts that are offered, and sample by sample.
Result<std::vector<SmallestArena>> FindSmallestArenas(const TrainConfig& config,
                                                      const ImageClassifier& model,
                                                      const OpRegistry& ops) {
  const Sizer sizer(model, ops);
  std::vector<SmallestArena> arenas;
  for (const int64_t microbatch : {int64_t{0}, kOfferedMicrobatch, int64_t{1}}) {
    if (microbatch >= config.batch) continue;
    TrainConfig asked = PlainConfig(config);
    asked.microbatch = microbatch;
    asked.recompute = "optimal";
    THIMBLE_ASSIGN_OR_RETURN(const Size size, sizer.Of(asked));
    arenas.push_back({microbatch, size.arena_bytes, size.step_flops});
  }
  return arenas;
}

Result<int64_t> LargestBatchWithin(const TrainConfig& config, const ImageClassifier& model,
                                   const OpRegistry& ops) {
  const Sizer sizer(model, ops);
  // Arenas grow with the batch, but for a few bytes of placement: `fits` is known to fit.
  int64_t fits = 0;
  int64_t too_large = config.batch + 1;
  while (fits + 1 < too_large) {
    TrainConfig tried = config;
    tried.batch = fits + (too_large - fits) / 2;
    THIMBLE_ASSIGN_OR_RETURN(const Size size, sizer.Of(tried));
    (size.arena_bytes <= config.budget_bytes ? fits : too_large) = tried.batch;
  }
  return fits;
}

}  // namespace thimble
