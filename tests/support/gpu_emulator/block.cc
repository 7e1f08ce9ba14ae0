#include "tests/support/gpu_emulator/block.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "tests/support/gpu_emulator/fiber.h"
#include "tests/support/gpu_emulator/races.h"
#include "tests/support/gpu_emulator/ready_threads.h"
#include "tests/support/gpu_emulator/shared_memory.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace gpu_emulator {
namespace {

enum class State : uint8_t { kNew, kReady, kPaused, kAtBarrier, kAmongLanes, kEnded };

struct Thread {
  int id = 0;
  State state = State::kNew;
  uint3 index{};
  std::unique_ptr<Fiber> fiber;  // while it runs
  Site site{};                   // where it waits
  int barrier = 0;
  int barrier_threads = 0;
  bool vote = false;
  Votes votes;
  uint32_t mask = 0;
  bool orders = false;
  void* own = nullptr;
  void (*act)(const Lanes&) = nullptr;
  std::vector<Copy> copies;               // not yet completed
  std::vector<size_t> batches_of_copies;  // where each batch ends in `copies`
};

constexpr size_t kBarriers = 16;  // of a block

uint32_t OrderFromEnvironment() {
  const char* order = std::getenv("THIMBLE_GPU_ORDER");
  return order == nullptr ? 1 : static_cast<uint32_t>(std::strtoul(order, nullptr, 10));
}

// Bits for lanes.
struct Warp {
  uint32_t exists = 0;
  uint32_t ended = 0;
  uint32_t meeting = 0;  // in MeetLanes
};

class Block {
 public:
  void Run(const Grid& grid, const std::function<void()>& thread_body);
  void Wake(Thread& thread) {
    thread.state = State::kReady;
    ready_.Add(thread.id);
    CountProgress();
  }
  void ArriveAtBarrier(int barrier) {
    ++at_barrier_[static_cast<size_t>(barrier)];
    FinishBarrier(barrier);
  }
  void MeetLanes(Thread& thread) {
    WarpOf(thread).meeting |= LaneBit(thread);
    FinishLanes(thread);
  }
  void DescribeThreads() const;

  Thread* current = nullptr;
  const Grid* grid = nullptr;
  const std::function<void()>* body = nullptr;
  bool progress = false;
  std::mutex mutex;

 private:
  void RunBlock();
  void RunThread(Thread& thread);
  void AfterEnd(Thread& thread);
  void FinishBarrier(int barrier);
  void FinishLanes(Thread& last);
  bool WakePaused();
  Thread& At(int id) { return threads_[static_cast<size_t>(id)]; }
  std::span<Thread> AllThreads() { return std::span(threads_).first(size_t(num_threads_)); }
  Warp& WarpOf(const Thread& thread) { return warps_[static_cast<size_t>(thread.id / kWarpLanes)]; }
  static int WarpBegin(const Thread& thread) { return thread.id / kWarpLanes * kWarpLanes; }
  static uint32_t LaneBit(const Thread& thread) { return 1U << thread.id % kWarpLanes; }

  std::vector<Thread> threads_;
  std::vector<std::unique_ptr<Fiber>> fibers_;       // that are free
  std::vector<std::unique_ptr<Fiber>> used_fibers_;  // that are free for the next block
  ReadyThreads ready_{OrderFromEnvironment()};
  std::array<int, kBarriers> at_barrier_{};  // threads that wait there
  std::array<Warp, kMaxThreads / kWarpLanes> warps_{};
  int num_threads_ = 0;
  int running_ = 0;  // threads that have not ended
};
Block gpu;

void Block::Run(const Grid& of, const std::function<void()>& thread_body) {
  const std::lock_guard lock(mutex);
  grid = &of;
  body = &thread_body;
  blockDim = of.threads;
  gridDim = of.blocks;
  const unsigned count = of.threads.x * of.threads.y * of.threads.z;
  if (threads_.size() < count) threads_.resize(count);
  races::BeginGrid();
  for (const uint32_t z : ready_.Permutation(of.blocks.z)) {
    for (const uint32_t y : ready_.Permutation(of.blocks.y)) {
      for (const uint32_t x : ready_.Permutation(of.blocks.x)) {
        blockIdx = {x, y, z};
        RunBlock();
      }
    }
  }
  races::EndGrid();
}

void Block::RunBlock() {
  BeginSharedMemory(grid->shared_bytes);
  running_ = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  num_threads_ = running_;
  ready_.BeginBlock();
  at_barrier_ = {};
  warps_ = {};
  for (int id = 0; id < num_threads_; ++id) {
    Thread& thread = At(id);
    const auto place = static_cast<unsigned>(id);
    thread.id = id;
    thread.state = State::kNew;
    thread.index = {place % blockDim.x, place / blockDim.x % blockDim.y,
                    place / (blockDim.x * blockDim.y)};
    WarpOf(thread).exists |= LaneBit(thread);
    ready_.Add(id);
  }
  while (running_ > 0) {
    if (ready_.empty() && !WakePaused()) {
      current = nullptr;
      Fail("these threads wait for each other");
    }
    RunThread(At(ready_.Take()));
  }
  std::ranges::move(used_fibers_, std::back_inserter(fibers_));
  used_fibers_.clear();
}

// Returns whether any is ready. If nothing has happened since the last time, none will find that
// its wait has ended.
bool Block::WakePaused() {
  if (!std::exchange(progress, false)) return false;
  for (Thread& thread : AllThreads()) {
    if (thread.state != State::kPaused) continue;
    thread.state = State::kReady;
    ready_.Add(thread.id);
  }
  return !ready_.empty();
}

void RunBody(void* /*unused*/) {
  races::BeginThread();
  (*gpu.body)();
  CompleteAllCopies();
  races::EndThread();
}

void Block::RunThread(Thread& thread) {
  current = &thread;
  threadIdx = thread.index;
  if (thread.state == State::kNew) {
    if (fibers_.empty()) fibers_.push_back(std::make_unique<Fiber>());
    // Threads that never wait all run on the same stack.
    thread.fiber = std::move(fibers_.back());
    fibers_.pop_back();
    thread.fiber->Begin(&RunBody, nullptr);
    thread.state = State::kReady;
  }
  if (!thread.fiber->Resume()) return;
  // ThreadSanitizer takes what runs on the same stack for one thread.
  (races::kAreFound ? used_fibers_ : fibers_).push_back(std::move(thread.fiber));
  AfterEnd(thread);
}

// Others may have waited for this thread only.
void Block::AfterEnd(Thread& thread) {
  thread.state = State::kEnded;
  --running_;
  CountProgress();
  Warp& warp = WarpOf(thread);
  warp.ended |= LaneBit(thread);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.meeting >> lane & 1) != 0) FinishLanes(At(WarpBegin(thread) + lane));
  }
  FinishBarrier(0);
}

void Block::FinishBarrier(int barrier) {
  const int arrived = at_barrier_[static_cast<size_t>(barrier)];
  if (arrived == 0) return;
  const auto is_here = [&](const Thread& thread) {
    return thread.state == State::kAtBarrier && thread.barrier == barrier;
  };
  const Thread& first = *std::ranges::find_if(AllThreads(), is_here);
  if (arrived != (first.barrier_threads == kAllThreads ? running_ : first.barrier_threads)) return;
  Votes votes{.all = arrived, .in_favour = 0};
  std::vector<void*> fibers;
  for (Thread& thread : AllThreads()) {
    if (!is_here(thread)) continue;
    if (thread.site.where.line() != first.site.where.line()) {
      Fail("threads meet at barriers in different lines");
    }
    votes.in_favour += thread.vote ? 1 : 0;
    fibers.push_back(thread.fiber->traced());
  }
  races::Meet(fibers);
  at_barrier_[static_cast<size_t>(barrier)] = 0;
  for (Thread& thread : AllThreads()) {
    if (!is_here(thread)) continue;
    thread.votes = votes;
    Wake(thread);
  }
}

void Block::FinishLanes(Thread& last) {
  Warp& warp = WarpOf(last);
  Lanes lanes;
  lanes.taking_part = last.mask & ~warp.ended & warp.exists;
  if ((lanes.taking_part & ~warp.meeting) != 0) return;
  const auto for_each = [&](const auto& visit) {
    for (uint32_t rest = lanes.taking_part; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (!visit(lane, At(WarpBegin(last) + lane))) return false;
    }
    return true;
  };
  const bool all_meet_here = for_each([&](int lane, const Thread& thread) {
    lanes.own[static_cast<size_t>(lane)] = thread.own;
    return thread.mask == last.mask;
  });
  if (!all_meet_here) return;
  for_each([&](int /*lane*/, const Thread& thread) {
    if (thread.act != last.act) Fail("lanes of a warp meet in different functions");
    return true;
  });
  last.act(lanes);
  if (last.orders) {
    std::vector<void*> fibers;
    for_each([&](int /*lane*/, const Thread& thread) {
      fibers.push_back(thread.fiber->traced());
      return true;
    });
    races::Meet(fibers);
  }
  warp.meeting &= ~lanes.taking_part;
  for_each([&](int /*lane*/, Thread& thread) {
    Wake(thread);
    return true;
  });
}

const char* Describe(const Thread& thread) {
  switch (thread.state) {
    case State::kEnded:
      return "has ended";
    case State::kNew:
      return "has not begun";
    case State::kReady:
      return "runs";
    default:
      return thread.site.function;
  }
}

bool AreAlike(const Thread& a, const Thread& b) {
  const bool waits = a.state != State::kEnded && a.state != State::kNew && a.state != State::kReady;
  return a.state == b.state && (!waits || (a.site.where.line() == b.site.where.line() &&
                                           a.site.function == b.site.function));
}

void Block::DescribeThreads() const {
  for (int begin = 0; begin < num_threads_;) {
    const Thread& thread = threads_[static_cast<size_t>(begin)];
    int end = begin + 1;
    while (end < num_threads_ && AreAlike(thread, threads_[static_cast<size_t>(end)])) ++end;
    std::fprintf(stderr, "  threads %d to %d: %s", begin, end - 1, Describe(thread));
    if (thread.state == State::kAmongLanes) std::fprintf(stderr, ", mask %#x", thread.mask);
    if (thread.state != State::kEnded && thread.site.function != nullptr) {
      std::fprintf(stderr, ", %s:%u", thread.site.where.file_name(), thread.site.where.line());
    }
    std::fprintf(stderr, "\n");
    begin = end;
  }
}

}  // namespace

void RunGrid(const Grid& grid, const std::function<void()>& thread) { gpu.Run(grid, thread); }

void Fail(const char* message) {
  std::fprintf(stderr, "GPU emulator: %s\n  in %s, block (%u, %u, %u)", message, gpu.grid->kernel,
               blockIdx.x, blockIdx.y, blockIdx.z);
  if (gpu.current != nullptr) {
    std::fprintf(stderr, ", thread (%u, %u, %u)", threadIdx.x, threadIdx.y, threadIdx.z);
  }
  std::fprintf(stderr, "\n");
  gpu.DescribeThreads();
  std::abort();
}

Votes WaitAtBarrier(const Site& site, int barrier, int threads, bool vote) {
  Thread& thread = *gpu.current;
  if (barrier < 0 || barrier >= static_cast<int>(kBarriers)) Fail("there is no such barrier");
  thread.state = State::kAtBarrier;
  thread.site = site;
  thread.barrier = barrier;
  thread.barrier_threads = threads;
  thread.vote = vote;
  gpu.ArriveAtBarrier(barrier);
  Fiber::Suspend();
  return thread.votes;
}

void MeetLanes(const Site& site, uint32_t mask, Memory memory, void* own,
               void (*act)(const Lanes&)) {
  Thread& thread = *gpu.current;
  thread.site = site;
  if ((mask >> Lane() & 1) == 0) Fail("a lane is not part of the mask that it passes");
  thread.state = State::kAmongLanes;
  thread.mask = mask;
  thread.orders = memory == Memory::kOrdered;
  thread.own = own;
  thread.act = act;
  gpu.MeetLanes(thread);
  Fiber::Suspend();
}

int Lane() { return gpu.current->id % kWarpLanes; }

void Pause(const Site& site) {
  gpu.current->site = site;
  gpu.current->state = State::kPaused;
  Fiber::Suspend();
}
void CountProgress() { gpu.progress = true; }

void EnqueueCopy(const Copy& copy) { gpu.current->copies.push_back(copy); }
void EndBatchOfCopies() { gpu.current->batches_of_copies.push_back(gpu.current->copies.size()); }

namespace {

void CompleteFirst(size_t count) {
  std::vector<Copy>& copies = gpu.current->copies;
  for (size_t i = 0; i < count; ++i) {
    const Copy& copy = copies[i];
    std::memcpy(copy.to, copy.from, copy.bytes);
    std::memset(static_cast<std::byte*>(copy.to) + copy.bytes, 0, copy.filled - copy.bytes);
  }
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

void CompleteCopies(size_t batches) {
  std::vector<size_t>& ends = gpu.current->batches_of_copies;
  if (ends.size() <= batches) return;
  const size_t done = ends.size() - batches;
  const size_t count = ends[done - 1];
  CompleteFirst(count);
  ends.erase(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(done));
  for (size_t& end : ends) end -= count;
}

void CompleteAllCopies() {
  CompleteFirst(gpu.current->copies.size());
  gpu.current->batches_of_copies.clear();
}

}  // namespace gpu_emulator
