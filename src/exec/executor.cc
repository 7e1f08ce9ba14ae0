#include "thimble/exec/executor.h"

#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/cpu/memory_limits.h"
#include "thimble/exec/lifetime_guard.h"

namespace thimble {

static_assert(kArenaAlignment % Arena::kAlignment == 0,
              "every planned arena size must be valid for Arena");

namespace {

// Only CPU kernels use threads.
int ThreadsOf(const Program& program, DeviceKind kind) {
  int threads = 1;
  if (kind != DeviceKind::kCpu) return threads;
  for (const Plan& plan : program.plans) threads = std::max(threads, plan.limits.threads);
  return threads;
}

// The host memory that the program needs.
MemoryNeed HostNeed(const Program& program, DeviceKind kind) {
  MemoryNeed need;
  need.threads = ThreadsOf(program, kind);
  for (const Plan& plan : program.plans) {
    need.plan_steps += static_cast<int64_t>(plan.steps.size());
  }
  need.block_bytes = static_cast<int64_t>(program.arena_bytes);
  if (kind == DeviceKind::kCpu) return need;
  need.block_bytes = static_cast<int64_t>(program.residents.end_bytes);
  need.what = "the host's copy of weights and optimizer state";
  need.advice = "try a smaller model";
  need.budget_helps = false;
  return need;
}

}  // namespace

class Executor::CountedScope {
 public:
  explicit CountedScope(Executor& executor)
      : executor_(executor),
        before_(ReadAllocationCounts()),
        device_before_(executor.device_->allocation_calls()) {}
  ~CountedScope() {
    const AllocationCounts now = ReadAllocationCounts();
    AllocationCounts& counts = executor_.allocations_;
    counts.heap_calls += now.heap_calls - before_.heap_calls;
    counts.heap_bytes += now.heap_bytes - before_.heap_bytes;
    counts.map_calls += now.map_calls - before_.map_calls;
    executor_.device_allocations_ += executor_.device_->allocation_calls() - device_before_;
  }
  CountedScope(const CountedScope&) = delete;
  CountedScope& operator=(const CountedScope&) = delete;

 private:
  Executor& executor_;
  AllocationCounts before_;
  int64_t device_before_;
};

Result<std::unique_ptr<Executor>> Executor::Create(Program program, const OpRegistry& ops) {
  return OpenFor(std::make_shared<const Program>(std::move(program)), ops);
}

Result<std::unique_ptr<Executor>> Executor::CreateFor(const Program& program,
                                                      const OpRegistry& ops) {
  return OpenFor(SharedProgram(SharedProgram(), &program), ops);
}

Result<std::unique_ptr<Executor>> Executor::CreateOn(std::unique_ptr<Device> device,
                                                     Program program, const OpRegistry& ops) {
  return StartOn(std::move(device), std::make_shared<const Program>(std::move(program)), ops);
}

Result<std::unique_ptr<Executor>> Executor::OpenFor(SharedProgram program, const OpRegistry& ops) {
  const DeviceKind kind = program->plans.empty() ? DeviceKind::kCpu : program->plans.front().device;
  THIMBLE_TRY(CheckMemory(HostNeed(*program, kind), ReadMemoryLimits()));
  THIMBLE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(kind, program->arena_bytes));
  return StartOn(std::move(device), std::move(program), ops);
}

Result<std::unique_ptr<Executor>> Executor::StartOn(std::unique_ptr<Device> device,
                                                    SharedProgram program, const OpRegistry& ops) {
  THIMBLE_CHECK(device->arena().size() == program->arena_bytes,
                "the arena has {} bytes, expected {}", device->arena().size(),
                program->arena_bytes);
  THIMBLE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                           ThreadPool::Start(ThreadsOf(*program, device->kind())));
  return std::unique_ptr<Executor>(
      new Executor(std::move(device), std::move(pool), std::move(program), ops));
}

Executor::Executor(std::unique_ptr<Device> device, std::unique_ptr<ThreadPool> pool,
                   SharedProgram program, const OpRegistry& ops)
    : owned_(std::move(program)),
      program_(*owned_),
      ops_(ops),
      device_(std::move(device)),
      pool_(std::move(pool)),
      audit_(*device_, program_.residents) {
  for (const Plan& plan : program_.plans) {
    bound_.push_back(std::make_unique<BoundPlan>(plan, ops, *device_, *pool_));
  }
  audited_.resize(program_.plans.size(), false);
  if (!device_->arena_is_host_memory()) {
    resident_copy_ = device_->AllocateHost(program_.residents.end_bytes);
    FetchResidents();  // copies the paint, so that residents never written stay paint
  }
}

void Executor::Prepare(size_t plan) {
  auditing_ = !audited_[plan];
  const std::string& group = program_.groups[plan];
  if (auditing_) audit_.Begin(program_.plans[plan], group_with_caches_ == group);
  group_with_caches_ = group;
  audited_[plan] = true;
  prepared_ = plan;
}

void Executor::Begin(size_t plan) {
  THIMBLE_CHECK(prepared_ == plan, "Run of plan '{}' without Prepare", program_.names[plan]);
  prepared_.reset();
  recording_ = false;
}

void Executor::Run(size_t plan) {
  Begin(plan);
  if (auditing_) return RunAudited(plan);
  std::optional<LifetimeGuard> guard;
  if (device_->arena_is_host_memory()) guard.emplace(device_->arena(), program_.plans[plan]);
  const CountedScope counted(*this);
  const BoundPlan& bound = *bound_[plan];
  const auto enqueue = [&](size_t index) {
    const BoundPlan::Group& group = bound.groups()[index];
    for (size_t step = group.first; guard && step < group.end; ++step) guard->BeforeStep(step);
    bound.RunGroup(group);
    for (size_t step = group.first; guard && step < group.end; ++step) guard->AfterStep(step);
  };
  recording_ = device_->Replay(
      plan, {bound.groups().size(), enqueue, [&](size_t index) { return bound.After(index); }});
}

void Executor::RunTimed(size_t plan, std::span<double> step_seconds) {
  THIMBLE_CHECK(step_seconds.size() == bound_[plan]->num_steps(),
                "got {} times, expected one for each of {} steps", step_seconds.size(),
                bound_[plan]->num_steps());
  Begin(plan);
  if (auditing_) return RunAudited(plan);
  const CountedScope counted(*this);
  device_->Time([&](size_t step) { bound_[plan]->RunStep(step); }, step_seconds);
}

void Executor::RunAudited(size_t plan) {
  for (size_t step = 0; step < bound_[plan]->num_steps(); ++step) {
    audit_.BeforeStep(step);
    {
      const CountedScope counted(*this);
      bound_[plan]->RunStep(step);
    }
    audit_.AfterStep(step);
  }
  audit_.End();
}

void Executor::ScanArena() { audit_.ScanArena(program_.plans); }

size_t Executor::planned_peak_bytes() const {
  size_t peak = 0;
  for (const Resident& resident : program_.residents.residents) {
    peak = std::max(peak, resident.offset + resident.size_bytes);
  }
  for (size_t plan = 0; plan < audited_.size(); ++plan) {
    if (audited_[plan]) peak = std::max(peak, PlannedPeakBytes(program_.plans[plan]));
  }
  return peak;
}

TensorView Executor::View(size_t plan, std::string_view value) const {
  const ValueId id = program_.plans[plan].graph.Find(value);
  THIMBLE_CHECK(id.valid(), "plan '{}' has no value '{}'", program_.names[plan], value);
  return ViewOf(program_.plans[plan], id, device_->arena());
}

void Executor::Write(const TensorView& value, std::span<const std::byte> from) {
  THIMBLE_CHECK(from.size() == value.size_bytes(), "got {} bytes, expected {}", from.size(),
                value.size_bytes());
  device_->Write(value.bytes().data(), from);
}

void Executor::Read(const TensorView& value, std::span<std::byte> to) const {
  THIMBLE_CHECK(to.size() == value.size_bytes(), "got {} bytes, expected {}", to.size(),
                value.size_bytes());
  device_->Read(value.bytes().data(), to);
}

void Executor::WriteNow(const TensorView& value, std::span<const std::byte> from) {
  Write(value, from);
  device_->Synchronize();
}

void Executor::ReadNow(const TensorView& value, std::span<std::byte> to) const {
  Read(value, to);
  device_->Synchronize();
}

std::span<std::byte> Executor::ResidentBytes(std::string_view name) const {
  const Resident* resident = program_.residents.Find(name);
  THIMBLE_CHECK(resident != nullptr, "no resident '{}'", name);
  const auto bytes = resident_copy_ ? resident_copy_->bytes() : device_->arena();
  return bytes.subspan(resident->offset, resident->size_bytes);
}

void Executor::FetchResidents() {
  if (!resident_copy_) return;
  device_->Read(device_->arena().data(), resident_copy_->bytes());
  device_->Synchronize();
}

// One by one, because the gaps between them must stay paint.
void Executor::StoreResidents() {
  if (!resident_copy_) return;
  for (const Resident& resident : program_.residents.residents) {
    device_->Write(device_->arena().data() + resident.offset,
                   resident_copy_->bytes().subspan(resident.offset, resident.size_bytes));
  }
  device_->Synchronize();
}

}  // namespace thimble
