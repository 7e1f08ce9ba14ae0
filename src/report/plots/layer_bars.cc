#include "thimble/report/plots/layer_bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/plan/layer_record.h"

namespace thimble {
namespace {

constexpr size_t kMostRows = 100;

void Add(BarRow& row, const BarRow& other) {
  for (size_t index = 0; index < kNumCategories; ++index) row.bytes[index] += other.bytes[index];
}

// The largest rows in their original order, and one row for the others.
std::vector<BarRow> Largest(std::vector<BarRow> rows) {
  if (rows.size() <= kMostRows) return rows;
  std::vector<size_t> sizes;
  for (const BarRow& row : rows) sizes.push_back(Total(row.bytes));
  std::nth_element(sizes.begin(), sizes.begin() + kMostRows, sizes.end(), std::greater<>());
  const size_t smallest = sizes[kMostRows];
  std::vector<BarRow> shown;
  BarRow others;
  for (BarRow& row : rows) {
    if (Total(row.bytes) > smallest) {
      shown.push_back(std::move(row));
    } else {
      Add(others, row);
    }
  }
  others.name = fmt::format("{} others", rows.size() - shown.size());
  shown.push_back(std::move(others));
  return shown;
}

}  // namespace

std::vector<BarRow> LayersAtPeak(const PlanRecord& plan) {
  std::vector<BarRow> rows;
  for (const LayerRecord& layer : LayersOf(plan)) {
    if (Total(layer.at_peak) == 0) continue;
    rows.push_back({layer.name.empty() ? "batches" : layer.name, layer.at_peak});
  }
  return Largest(std::move(rows));
}

}  // namespace thimble
