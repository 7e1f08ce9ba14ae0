// MemoryAudit: measures the memory that a plan really uses, independently of the planned sizes.
//
// All memory outside live buffers is painted with a pattern that no computation produces. During an
// audited run each buffer is scanned when its lifetime begins (its bytes must still be paint:
// otherwise something wrote there while no buffer was alive) and when it ends (how far was it
// written?), and then painted again. The extent written is the measured size of the buffer; memory
// outside all buffers must always stay paint.
//
// The unit is a 4-byte word: a word counts as used if any of its bytes changed. The pattern is a
// NaN, so reading memory before writing it shows in the results. The device paints and scans; what
// to paint, and what the results mean, is decided here for all devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/device/device.h"
#include "thimble/plan/plan.h"

namespace thimble {

class MemoryAudit {
 public:
  // Paints the whole arena. The device must outlive the audit.
  MemoryAudit(Device& device, const ResidentLayout& residents);

  // Paints everything except the residents; call before the inputs of the run are written. If an
  // earlier run of the same group has filled the caches of this plan, they are kept, too.
  void Begin(const Plan& plan, bool keeps_caches = false);
  void BeforeStep(size_t step);
  void AfterStep(size_t step);
  void End();

  // Checks the arena between runs: residents are measured and must be written to their end, and the
  // gaps, which belong to no buffer of any of these plans, must be paint.
  void ScanArena(const std::vector<Plan>& plans);

  // Faults found so far, one line each; empty if there are none.
  const std::vector<std::string>& faults() const { return faults_; }
  // Highest address, relative to the arena, that was found in use.
  size_t measured_peak_bytes() const { return measured_peak_bytes_; }
  // Of the last audited run, by BufferId: bytes found in use (residents: 0, they are measured by
  // ScanArena).
  const std::vector<size_t>& measured_buffers() const { return measured_buffers_; }
  // Of the last scan, in the order of the layout; all 0 before the first.
  const std::vector<size_t>& measured_residents() const { return measured_residents_; }
  const ResidentLayout& residents() const { return residents_; }

 private:
  void Measure(size_t buffer);
  // Notes the peak, and reports a resident that is not in use to its end. Returns the bytes in use.
  size_t MeasureResident(const Resident& resident);
  void MeasureResidents();
  void Report(std::string fault);
  void NotePeak(size_t end_bytes);

  Device& device_;
  ResidentLayout residents_;
  const Plan* plan_ = nullptr;  // of the current run
  std::vector<size_t> measured_buffers_;
  std::vector<size_t> measured_residents_;
  size_t measured_peak_bytes_ = 0;
  std::vector<std::string> faults_;
};

// The end of the highest buffer or resident of a plan, which the audit must measure.
size_t PlannedPeakBytes(const Plan& plan);

}  // namespace thimble
