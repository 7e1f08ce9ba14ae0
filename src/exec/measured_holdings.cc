#include "thimble/exec/measured_holdings.h"

#include <fmt/format.h>

#include "thimble/base/check.h"

namespace thimble {
namespace {

size_t MeasuredResident(const MemoryAudit& audit, const std::string& name) {
  const Resident* resident = audit.residents().Find(name);
  THIMBLE_CHECK(resident != nullptr, "no resident '{}'", name);
  return audit
      .measured_residents()[static_cast<size_t>(resident - audit.residents().residents.data())];
}

size_t MeasuredBuffer(const std::vector<size_t>& buffers, int64_t buffer) {
  const auto index = static_cast<size_t>(buffer);
  THIMBLE_CHECK(index < buffers.size(), "no measured buffer {}", buffer);
  return buffers[index];
}

}  // namespace

std::vector<Holding> MeasuredHoldings(const std::vector<Holding>& planned,
                                      const MemoryAudit& audit) {
  return MeasuredHoldings(planned, audit.measured_buffers(), audit);
}

std::vector<Holding> MeasuredHoldings(const std::vector<Holding>& planned,
                                      const std::vector<size_t>& buffers,
                                      const MemoryAudit& audit) {
  std::vector<Holding> measured = planned;
  for (Holding& holding : measured) {
    holding.size_bytes = holding.resident ? MeasuredResident(audit, holding.name)
                                          : MeasuredBuffer(buffers, holding.buffer);
  }
  return measured;
}

std::vector<HoldingDifference> DifferencesOf(const std::vector<Holding>& planned,
                                             const std::vector<Holding>& measured) {
  THIMBLE_CHECK(planned.size() == measured.size(), "{} planned and {} measured holdings",
                planned.size(), measured.size());
  std::vector<HoldingDifference> differences;
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].size_bytes == measured[i].size_bytes) continue;
    differences.push_back({planned[i], measured[i].size_bytes});
  }
  return differences;
}

std::string ToString(const HoldingDifference& difference) {
  const Holding& held = difference.planned;
  return fmt::format("{} '{}'{} in steps [{}, {}): {} bytes planned, {} measured",
                     Name(held.category), held.name,
                     held.layer.empty() ? "" : fmt::format(" of layer {}", held.layer),
                     held.live.first, held.live.end, held.size_bytes, difference.measured_bytes);
}

}  // namespace thimble
