#include "thimble/plan/recompute/candidates.h"

#include <algorithm>
#include <future>
#include <limits>
#include <memory>
#include <thread>

#include "thimble/base/byte_size.h"
#include "thimble/base/start_thread.h"
#include "thimble/plan/order/find_orders.h"
#include "thimble/plan/order/late_order.h"
#include "thimble/plan/passes/in_place.h"
#include "thimble/plan/recompute/apply_schedule.h"
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

}  // namespace

size_t PlacedArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options) {
  const std::vector<Interval> intervals = IntervalsOf(SharedBuffers(draft, ops, options));
  const OffsetPlan placed = IsDecided(Decides::kOffsets, options)
                                ? PlaceIntervals(intervals, kArenaAlignment)
                                : PlaceWithoutSharing(intervals, kArenaAlignment);
  return RoundUp(draft.residents.end_bytes + placed.peak_bytes, kArenaAlignment);
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
  bool is_long = false;
  for (const PlanDraft& draft : drafts) {
    THIMBLE_ASSIGN_OR_RETURN(Chain chain, MakeChain(draft, ops_, options_));
    is_long |= chain.num_stages > OptimalSchedules::kLongChain;
    sources_.push_back({draft, std::move(chain)});
  }
  // Exceptions, such as too little memory, are thrown where the results are read.
  std::vector<std::future<std::vector<Candidate>>> found;
  std::vector<std::thread> threads;
  for (size_t i = first; i < sources_.size(); ++i) {
    auto task = std::make_shared<std::packaged_task<std::vector<Candidate>()>>(
        [this, i] { return Search(sources_[i]); });
    found.push_back(task->get_future());
    // The last one runs here, and so do all if there are no more threads to have.
    auto started = is_long && i + 1 < sources_.size()
                       ? StartThread("a thread for planning", "", [task] { (*task)(); })
                       : Result<std::thread>(Failed(""));
    if (started.ok()) {
      threads.push_back(std::move(started).value());
    } else {
      (*task)();
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& of_draft : found) {
    for (Candidate& candidate : of_draft.get()) candidates_.push_back(std::move(candidate));
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.work < b.work; });
  return {};
}

std::vector<Candidates::Candidate> Candidates::Search(const Source& source) const {
  std::vector<Candidate> found;
  const OptimalSchedules optimal(source.draft.graph, ops_, source.chain);
  const std::vector<TradeOff> tradeoffs = optimal.tradeoffs();
  const size_t count = std::min(tradeoffs.size(), kMaxCandidates);
  for (size_t k = 0; k < count; ++k) {
    const size_t index = count == 1 ? 0 : k * (tradeoffs.size() - 1) / (count - 1);
    found.push_back({&source, tradeoffs[index].work, optimal.Make(tradeoffs[index].bytes),
                     tradeoffs[index].bytes});
  }
  found.push_back(Named(source, {.kind = RecomputeKind::kNone}));
  found.push_back(Named(source, {.kind = RecomputeKind::kCheap}));
  found.push_back(Named(source, {.kind = RecomputeKind::kSqrt}));
  for (size_t stride = 1; stride <= kMaxBlockStride; ++stride) {
    found.push_back(Named(source, {.kind = RecomputeKind::kBlocks, .stride = stride}));
  }
  return found;
}

Candidates::Candidate Candidates::Named(const Source& source, const RecomputeSpec& spec) const {
  RebuildSchedule schedule = MakeNamedSchedule(source.draft.graph, ops_, source.chain, spec);
  const double work = RerunWork(source.chain, schedule);
  return {&source, work, std::move(schedule)};
}

PlanDraft Candidates::Apply(const Candidate& candidate) const {
  return ApplySchedule(candidate.source->draft, candidate.source->chain, candidate.schedule);
}

size_t Candidates::LiveBytes(Candidate& candidate) const {
  if (!candidate.live_bytes) {
    candidate.live_bytes = LiveArenaBytes(Apply(candidate), ops_, options_);
  }
  return *candidate.live_bytes;
}

size_t Candidates::PlacedBytes(Candidate& candidate) const {
  if (!candidate.placed_bytes) {
    candidate.placed_bytes = PlacedArenaBytes(Apply(candidate), ops_, options_);
  }
  return *candidate.placed_bytes;
}

std::optional<PlanDraft> Candidates::LeastWorkWithin(size_t limit_bytes) {
  for (Candidate& candidate : candidates_) {
    if (IsFarAbove(candidate.promised_bytes, limit_bytes)) continue;
    if (LiveBytes(candidate) > limit_bytes || PlacedBytes(candidate) > limit_bytes) continue;
    return Apply(candidate);
  }
  return std::nullopt;
}

PlanDraft Candidates::Smallest() {
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const Candidate& candidate : candidates_) {
    if (candidate.promised_bytes > 0) fewest = std::min(fewest, candidate.promised_bytes);
  }
  std::vector<Candidate*> by_size;
  for (Candidate& candidate : candidates_) {
    if (IsFarAbove(candidate.promised_bytes, fewest)) continue;
    LiveBytes(candidate);
    by_size.push_back(&candidate);
  }
  std::stable_sort(by_size.begin(), by_size.end(), [](const Candidate* a, const Candidate* b) {
    return *a->live_bytes < *b->live_bytes;
  });
  Candidate* best = by_size.front();
  for (Candidate* candidate : by_size) {
    if (*candidate->live_bytes > PlacedBytes(*best)) break;
    const std::pair size(PlacedBytes(*candidate), candidate->work);
    if (size < std::pair(PlacedBytes(*best), best->work)) best = candidate;
  }
  return Apply(*best);
}

}  // namespace thimble
