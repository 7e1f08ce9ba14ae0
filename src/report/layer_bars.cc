#include "thimble/report/layer_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace thimble {
namespace {

constexpr size_t kMostRows = 100;

// Layers of the forward pass with their place in the network.
std::map<std::string, size_t> LayersInOrder(const PlanRecord& plan) {
  std::map<std::string, size_t> order;
  for (const StepRecord& step : plan.steps) {
    if (step.phase == "forward") order.emplace(step.layer, order.size());
  }
  return order;
}

// The layer itself, or the one it is a part of; its own name where it is neither.
std::string WholeLayer(const std::map<std::string, size_t>& layers, const std::string& layer) {
  std::string whole = layer;
  while (!layers.contains(whole)) {
    const size_t dot = whole.rfind('.');
    if (dot == std::string::npos) return layer;
    whole.resize(dot);
  }
  return whole;
}

void Add(BarRow& row, const BarRow& other) {
  for (size_t index = 0; index < kNumCategories; ++index) row.bytes[index] += other.bytes[index];
}

// The largest rows in their order, and one for the others.
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
  const size_t peak_step = Account(plan).peak_step;
  const std::map<std::string, size_t> layers = LayersInOrder(plan);
  // Behind the layers of the network those it does not know, then what has none.
  std::map<std::pair<size_t, std::string>, BarRow> rows;
  for (const Holding& holding : plan.holdings) {
    if (!holding.live.Contains(peak_step)) continue;
    const std::string name = holding.layer.empty() ? "" : WholeLayer(layers, holding.layer);
    const auto place = layers.find(name);
    size_t order = place != layers.end() ? place->second : layers.size();
    if (name.empty()) order = layers.size() + 1;
    BarRow& row = rows[{order, name}];
    row.name = name.empty() ? "batches" : name;
    row.bytes[static_cast<size_t>(holding.category)] += holding.size_bytes;
  }
  std::vector<BarRow> in_order;
  for (auto& [place, row] : rows) in_order.push_back(std::move(row));
  return Largest(std::move(in_order));
}

}  // namespace thimble
