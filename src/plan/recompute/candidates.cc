#include "thimble/plan/recompute/candidates.h"

#include <algorithm>
#include <future>
#include <limits>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "thimble/base/byte_size.h"
#include "thimble/base/start_thread.h"
#include "thimble/plan/order/find_orders.h"
#include "thimble/plan/order/late_order.h"
#include "thimble/plan/passes/in_place.h"
#include "thimble/plan/recompute/apply_schedule.h"
#include "thimble/plan/recompute/fewest_bytes.h"
#include "thimble/plan/recompute/optimal.h"

namespace thimble {
namespace {

// Named strategies are in the class that OptimalSchedules searches, but after placement one of them
// may be better by a few bytes. More blocks than this between kept values never help.
constexpr size_t kMaxBlockStride = 8;

// Trade-offs tried per draft, spread evenly: wrn-28-2 has about this many.
constexpr size_t kMaxCandidates = 160;

// For larger graphs only the order that is usually the best is tried.
constexpr size_t kManyNodes = 600;

// The buffers as they will be after the in-place pass.
std::vector<DraftBuffer> SharedBuffers(const PlanDraft& draft, const OpRegistry& ops,
                                       const PlanOptions& options) {
  if (!IsDecided(Decides::kStorage, options)) return Buffers(draft);
  PlanDraft shared = draft;
  shared.storage = ShareInPlace(draft, ops);
  return Buffers(shared);
}

// Live bytes never exceed the promise and are rarely more than a few percent below it, so that they
// need not be counted to know that they are above `bytes`.
bool IsFarAbove(size_t promised_bytes, size_t bytes) { return promised_bytes > bytes + bytes / 8; }

// Whether both will probably be placed, since gaps take a few hundred bytes.
bool IsNearlyAsSmall(size_t live_bytes, size_t fewer_live_bytes) {
  return live_bytes <= fewer_live_bytes + fewer_live_bytes / 1024;
}

// The buffers as the later passes will place them.
PlacedIntervals Place(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options) {
  PlacedIntervals placed{IntervalsOf(SharedBuffers(draft, ops, options)), {}};
  placed.plan = IsDecided(Decides::kOffsets, options)
                    ? PlaceIntervals(placed.intervals, kArenaAlignment)
                    : PlaceWithoutSharing(placed.intervals, kArenaAlignment);
  return placed;
}

size_t ArenaBytes(const PlanDraft& draft, const PlacedIntervals& placed) {
  return RoundUp(draft.residents.end_bytes + placed.plan.peak_bytes, kArenaAlignment);
}

}  // namespace

size_t PlacedArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options) {
  return ArenaBytes(draft, Place(draft, ops, options));
}

size_t LiveArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options) {
  return draft.residents.end_bytes +
         LowerBoundBytes(IntervalsOf(SharedBuffers(draft, ops, options)));
}

double RerunWork(const Chain& chain, const RebuildSchedule& schedule) {
  std::vector<bool> has_run(chain.forward.size(), false);
  double work = 0;
  for (const ChainStep& step : schedule) {
    if (step.backward) continue;
    if (has_run[step.position]) work += chain.reruns[step.position].work;
    has_run[step.position] = true;
  }
  return work;
}

std::vector<PlanDraft> DraftsToTry(const PlanDraft& draft, const PlanOptions& options) {
  std::vector<PlanDraft> drafts = {draft};
  if (!IsDecided(Decides::kOrder, options)) return drafts;
  std::vector<FoundOrder> orders;
  if (draft.graph.nodes.size() <= kManyNodes) {
    orders = FindOrders(draft.graph);
  } else {
    orders.push_back({MakeLateOrder(draft.graph, draft.order), {}});
  }
  for (FoundOrder& found : orders) {
    if (found.order == draft.order) continue;
    drafts.push_back(draft);
    drafts.back().order = std::move(found.order);
  }
  return drafts;
}

Result<void> Candidates::Add(std::span<const PlanDraft> drafts) {
  const size_t first = sources_.size();
  for (const PlanDraft& draft : drafts) {
    THIMBLE_ASSIGN_OR_RETURN(Chain chain, MakeChain(draft, ops_, options_));
    is_long_ |= chain.num_stages > OptimalSchedules::kLongChain;
    sources_.push_back({sources_.size(), draft, std::move(chain)});
  }
  std::vector<std::vector<Candidate>> named(drafts.size());
  std::vector<Task> tasks;
  for (size_t i = 0; i < drafts.size(); ++i) {
    tasks.emplace_back([&, i] { named[i] = Named(sources_[first + i]); });
  }
  RunAll(tasks);
  Add(std::move(named));
  return {};
}

void Candidates::FindFewestBytes() {
  std::vector<Task> tasks;
  for (Source& source : sources_) {
    if (source.fewest_bytes) continue;
    tasks.emplace_back(
        [&] { source.fewest_bytes = FewestBytes(source.draft.graph, ops_, source.chain); });
  }
  RunAll(tasks);
}

void Candidates::SearchWithin(size_t bytes) {
  FindFewestBytes();
  std::vector<std::vector<Candidate>> found(sources_.size());
  std::vector<Task> tasks;
  for (size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    if (source.is_searched || IsFarAbove(*source.fewest_bytes, bytes)) continue;
    source.is_searched = true;
    tasks.emplace_back([&, i] { found[i] = Optimal(sources_[i]); });
  }
  if (tasks.empty()) return;
  RunAll(tasks);
  Add(std::move(found));
}

void Candidates::Add(std::vector<std::vector<Candidate>> found) {
  for (std::vector<Candidate>& of_draft : found) {
    std::move(of_draft.begin(), of_draft.end(), std::back_inserter(candidates_));
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.work, a.source->number, a.number) <
           std::tie(b.work, b.source->number, b.number);
  });
}

void Candidates::RunAll(const std::vector<Task>& tasks) const {
  // Exceptions, such as too little memory, are thrown where the futures are read.
  std::vector<std::future<void>> done;
  std::vector<std::thread> threads;
  for (const Task& task : tasks) {
    auto packaged = std::make_shared<std::packaged_task<void()>>(task);
    done.push_back(packaged->get_future());
    // The last one runs here, and so do all if there are no more threads to have.
    auto started = is_long_ && &task != &tasks.back()
                       ? StartThread("a thread for planning", "", [packaged] { (*packaged)(); })
                       : Result<std::thread>(Failed(""));
    if (started.ok()) {
      threads.push_back(std::move(started).value());
    } else {
      (*packaged)();
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (std::future<void>& future : done) future.get();
}

std::vector<Candidates::Candidate> Candidates::Optimal(const Source& source) const {
  std::vector<Candidate> found;
  const OptimalSchedules optimal(source.draft.graph, ops_, source.chain);
  const std::vector<TradeOff> tradeoffs = optimal.tradeoffs();
  const size_t count = std::min(tradeoffs.size(), kMaxCandidates);
  for (size_t k = 0; k < count; ++k) {
    const size_t index = count == 1 ? 0 : k * (tradeoffs.size() - 1) / (count - 1);
    Candidate& candidate = found.emplace_back();
    candidate.source = &source;
    candidate.number = k;
    candidate.work = tradeoffs[index].work;
    candidate.schedule = optimal.Make(tradeoffs[index].bytes);
    candidate.promised_bytes = tradeoffs[index].bytes;
  }
  return found;
}

std::vector<Candidates::Candidate> Candidates::Named(const Source& source) const {
  std::vector<RecomputeSpec> specs = {{.kind = RecomputeKind::kNone},
                                      {.kind = RecomputeKind::kCheap},
                                      {.kind = RecomputeKind::kSqrt}};
  for (size_t stride = 1; stride <= kMaxBlockStride; ++stride) {
    specs.push_back({.kind = RecomputeKind::kBlocks, .stride = stride});
  }
  std::vector<Candidate> named;
  for (const RecomputeSpec& spec : specs) {
    RebuildSchedule schedule = MakeNamedSchedule(source.draft.graph, ops_, source.chain, spec);
    const double work = RerunWork(source.chain, schedule);
    named.push_back({&source, kMaxCandidates + named.size(), work, std::move(schedule)});
  }
  return named;
}

PlanDraft Candidates::Apply(const Candidate& candidate) const {
  return ApplySchedule(candidate.source->draft, candidate.source->chain, candidate.schedule);
}

PlanDraft Candidates::Choose(Candidate& candidate) const {
  PlanDraft draft = Apply(candidate);
  draft.placed = std::exchange(candidate.placed, std::nullopt);
  return draft;
}

size_t Candidates::LiveBytes(Candidate& candidate) const {
  if (!candidate.live_bytes) {
    candidate.live_bytes = LiveArenaBytes(Apply(candidate), ops_, options_);
  }
  return *candidate.live_bytes;
}

size_t Candidates::PlacedBytes(Candidate& candidate) const {
  if (!candidate.placed_bytes) {
    const PlanDraft draft = Apply(candidate);
    candidate.placed = Place(draft, ops_, options_);
    candidate.placed_bytes = ArenaBytes(draft, *candidate.placed);
  }
  return *candidate.placed_bytes;
}

std::optional<PlanDraft> Candidates::LeastWorkWithin(size_t limit_bytes) {
  SearchWithin(limit_bytes);
  for (Candidate& candidate : candidates_) {
    if (IsFarAbove(candidate.promised_bytes, limit_bytes)) continue;
    if (LiveBytes(candidate) > limit_bytes) continue;
    if (PlacedBytes(candidate) <= limit_bytes) return Choose(candidate);
    candidate.placed.reset();
  }
  return std::nullopt;
}

PlanDraft Candidates::AnyWithin(size_t bytes) {
  for (Candidate& candidate : candidates_) {
    const bool is_named = candidate.promised_bytes == 0;
    if (!is_named || LiveBytes(candidate) > bytes) continue;
    if (PlacedBytes(candidate) <= bytes) return Choose(candidate);
    candidate.placed.reset();
  }
  FindFewestBytes();
  const auto may_fit = [&](const Source& source) {
    const size_t resident_bytes = source.draft.residents.end_bytes;
    return bytes > resident_bytes && !IsFarAbove(*source.fewest_bytes, bytes - resident_bytes);
  };
  if (std::any_of(sources_.begin(), sources_.end(), may_fit)) return Smallest();
  PlanDraft draft = Apply(candidates_.front());
  draft.placed = PlacedIntervals{IntervalsOf(SharedBuffers(draft, ops_, options_)), {}};
  draft.placed->plan = PlaceWithoutSharing(draft.placed->intervals, kArenaAlignment);
  return draft;
}

PlanDraft Candidates::Smallest() {
  FindFewestBytes();
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const Source& source : sources_) {
    if (*source.fewest_bytes > 0) fewest = std::min(fewest, *source.fewest_bytes);
  }
  SearchWithin(fewest);
  std::vector<Candidate*> by_size;
  for (Candidate& candidate : candidates_) {
    if (!IsFarAbove(candidate.promised_bytes, fewest)) by_size.push_back(&candidate);
  }
  const auto count_half = [&](size_t half) {
    for (size_t i = half; i < by_size.size(); i += 2) LiveBytes(*by_size[i]);
  };
  RunAll({[&] { count_half(0); }, [&] { count_half(1); }});
  std::stable_sort(by_size.begin(), by_size.end(), [](const Candidate* a, const Candidate* b) {
    return *a->live_bytes < *b->live_bytes;
  });
  Candidate* best = by_size.front();
  for (size_t i = 0; i < by_size.size(); ++i) {
    Candidate* candidate = by_size[i];
    if (i > 0 && *candidate->live_bytes > PlacedBytes(*best)) break;
    if (is_long_ && !candidate->placed_bytes && i + 1 < by_size.size() &&
        IsNearlyAsSmall(*by_size[i + 1]->live_bytes, *candidate->live_bytes)) {
      RunAll({[&] { PlacedBytes(*by_size[i + 1]); }, [&] { PlacedBytes(*candidate); }});
    }
    const std::pair size(PlacedBytes(*candidate), candidate->work);
    if (candidate == best) continue;
    if (size < std::pair(PlacedBytes(*best), best->work)) std::swap(candidate, best);
    candidate->placed.reset();
  }
  return Choose(*best);
}

}  // namespace thimble
