#include "thimble/exec/memory_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "thimble/base/byte_size.h"

namespace thimble {
namespace {

// Enough to find the cause; a broken kernel would report thousands.
constexpr size_t kMaxFaults = 20;

size_t PaddedEnd(const Placement& placement) {
  return RoundUp(placement.offset + placement.size_bytes, kArenaAlignment);
}

struct Range {
  size_t begin;
  size_t end;
};

// Helps to find a stray write: names the last buffer at this byte and the nearest one that ends
// before it. Empty if there is neither.
std::string Surroundings(const std::vector<const Placement*>& placements, size_t byte) {
  const Placement* there = nullptr;
  const Placement* before = nullptr;
  for (const Placement* placement : placements) {
    const size_t end = placement->offset + placement->size_bytes;
    if (placement->offset <= byte && byte < end) {
      if (there == nullptr || placement->live.end > there->live.end) there = placement;
    } else if (end <= byte) {
      if (before == nullptr || end > before->offset + before->size_bytes) before = placement;
    }
  }
  std::string text;
  if (there != nullptr) text += fmt::format(", last used by '{}'", there->name);
  if (before != nullptr) text += fmt::format("; nearest buffer before it: '{}'", before->name);
  return text;
}

// The parts of [0, size) that no range covers.
std::vector<Range> Complement(std::vector<Range> covered, size_t size) {
  std::sort(covered.begin(), covered.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> gaps;
  size_t reached = 0;
  for (const Range& range : covered) {
    if (range.begin > reached) gaps.push_back({reached, range.begin});
    reached = std::max(reached, range.end);
  }
  if (reached < size) gaps.push_back({reached, size});
  return gaps;
}

// The residents that only the group of this plan has.
std::span<const Resident> CachesOf(const Plan& plan, const ResidentLayout& of_all_plans) {
  return std::span(plan.residents.residents).subspan(of_all_plans.residents.size());
}

}  // namespace

MemoryAudit::MemoryAudit(Device& device, const ResidentLayout& residents)
    : device_(device), residents_(residents), measured_residents_(residents.residents.size(), 0) {
  device_.Paint(0, device_.arena().size());
}

void MemoryAudit::Report(std::string fault) {
  if (faults_.size() < kMaxFaults) faults_.push_back(std::move(fault));
}

void MemoryAudit::NotePeak(size_t end_bytes) {
  measured_peak_bytes_ = std::max(measured_peak_bytes_, end_bytes);
}

void MemoryAudit::Begin(const Plan& plan, bool keeps_caches) {
  plan_ = &plan;
  measured_buffers_.assign(plan.placements.size(), 0);
  device_.Paint(keeps_caches ? plan.residents.end_bytes : residents_.end_bytes,
                device_.arena().size());
}

void MemoryAudit::BeforeStep(size_t step) {
  for (const Placement& placement : plan_->placements) {
    // A buffer alive from the first step on may be an input that the caller has already written.
    if (placement.resident || placement.live.first != step || step == 0) continue;
    if (const size_t used = device_.UsedBytes(placement.offset, PaddedEnd(placement)); used != 0) {
      Report(
          fmt::format("before step {}: '{}' at offset {} was written up to byte {} while no "
                      "buffer was alive there",
                      step, placement.name, placement.offset, used));
    }
  }
}

void MemoryAudit::Measure(size_t buffer) {
  const Placement& placement = plan_->placements[buffer];
  const size_t used = device_.UsedBytes(placement.offset, PaddedEnd(placement));
  measured_buffers_[buffer] = used;
  NotePeak(placement.offset + used);
  if (used != placement.size_bytes) {
    Report(fmt::format("'{}' at offset {} has {} bytes planned, {} found in use", placement.name,
                       placement.offset, placement.size_bytes, used));
  }
}

void MemoryAudit::AfterStep(size_t step) {
  for (size_t buffer = 0; buffer < plan_->placements.size(); ++buffer) {
    const Placement& placement = plan_->placements[buffer];
    if (placement.resident || placement.live.end != step + 1) continue;
    Measure(buffer);
    // Not after the last step: the caller still reads the outputs of the graph.
    if (step + 1 < plan_->steps.size()) device_.Paint(placement.offset, PaddedEnd(placement));
  }
}

void MemoryAudit::End() {
  std::vector<Range> alive = {{0, residents_.end_bytes}};
  for (const Resident& cache : CachesOf(*plan_, residents_)) {
    MeasureResident(cache);
    alive.push_back({cache.offset, cache.offset + cache.size_bytes});
  }
  std::vector<const Placement*> placements;
  for (const Placement& placement : plan_->placements) {
    placements.push_back(&placement);
    if (placement.live.end == plan_->steps.size()) {
      alive.push_back({placement.offset, placement.offset + placement.size_bytes});
    }
  }
  for (const Range& dead : Complement(std::move(alive), device_.arena().size())) {
    if (const size_t used = device_.UsedBytes(dead.begin, dead.end); used != 0) {
      const size_t byte = dead.begin + used - 1;
      Report(
          fmt::format("after the last step: byte {} was written while no buffer was alive there{}",
                      byte, Surroundings(placements, byte)));
    }
  }
  plan_ = nullptr;
}

size_t MemoryAudit::MeasureResident(const Resident& resident) {
  const size_t end = RoundUp(resident.offset + resident.size_bytes, kArenaAlignment);
  const size_t used = device_.UsedBytes(resident.offset, end);
  NotePeak(resident.offset + used);
  if (used != resident.size_bytes) {
    Report(fmt::format("resident '{}' at offset {} has {} bytes planned, {} found in use",
                       resident.name, resident.offset, resident.size_bytes, used));
  }
  return used;
}

void MemoryAudit::MeasureResidents() {
  for (size_t index = 0; index < residents_.residents.size(); ++index) {
    measured_residents_[index] = MeasureResident(residents_.residents[index]);
  }
}

void MemoryAudit::ScanArena(const std::vector<Plan>& plans) {
  MeasureResidents();
  std::vector<Range> owned;
  std::vector<const Placement*> placements;
  for (const Resident& resident : residents_.residents) {
    owned.push_back({resident.offset, resident.offset + resident.size_bytes});
  }
  for (const Plan& plan : plans) {
    for (const Resident& cache : CachesOf(plan, residents_)) {
      owned.push_back({cache.offset, cache.offset + cache.size_bytes});
    }
    for (const Placement& placement : plan.placements) {
      owned.push_back({placement.offset, placement.offset + placement.size_bytes});
      placements.push_back(&placement);
    }
  }
  for (const Range& gap : Complement(std::move(owned), device_.arena().size())) {
    if (const size_t used = device_.UsedBytes(gap.begin, gap.end); used != 0) {
      const size_t byte = gap.begin + used - 1;
      Report(fmt::format("byte {} belongs to no buffer and was written{}", byte,
                         Surroundings(placements, byte)));
    }
  }
  NotePeak(device_.UsedBytes(0, device_.arena().size()));
}

size_t PlannedPeakBytes(const Plan& plan) {
  size_t peak = 0;
  for (const Resident& resident : plan.residents.residents) {
    peak = std::max(peak, resident.offset + resident.size_bytes);
  }
  for (const Placement& placement : plan.placements) {
    peak = std::max(peak, placement.offset + placement.size_bytes);
  }
  return peak;
}

}  // namespace thimble
