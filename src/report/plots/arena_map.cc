#include "thimble/report/plots/arena_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/plot_style.h"
#include "thimble/report/units.h"

namespace thimble {
namespace {

// Rectangles thinner than this, in units of the picture, cannot be told from their neighbours.
constexpr double kThin = 1;

// Holdings drawn as one rectangle.
struct Patch {
  const Holding* first = nullptr;
  size_t end_offset = 0;
  size_t size_bytes = 0;  // sum over the holdings, without the space between them
  size_t count = 0;
};

bool LiveAlike(const Holding& a, const Holding& b) {
  return a.category == b.category && a.live.first == b.live.first && a.live.end == b.live.end;
}

// Sorted by lifetime and address. Thin neighbours are joined if the rectangle covers no other
// holding.
std::vector<Patch> Patches(const PlanRecord& plan, double thin_bytes) {
  std::vector<const Holding*> order;
  for (const Holding& holding : plan.holdings) order.push_back(&holding);
  std::sort(order.begin(), order.end(), [](const Holding* a, const Holding* b) {
    return std::tie(a->live.first, a->live.end, a->offset) <
           std::tie(b->live.first, b->live.end, b->offset);
  });
  std::vector<Patch> patches;
  for (const Holding* holding : order) {
    const bool thin = static_cast<double>(holding->size_bytes) < thin_bytes;
    if (thin && !patches.empty() && LiveAlike(*patches.back().first, *holding)) {
      Patch& last = patches.back();
      const bool small = static_cast<double>(last.end_offset - last.first->offset) < thin_bytes;
      if (small && holding->offset < last.end_offset + kArenaAlignment) {
        last.end_offset = holding->offset + holding->size_bytes;
        last.size_bytes += holding->size_bytes;
        ++last.count;
        continue;
      }
    }
    patches.push_back({holding, holding->offset + holding->size_bytes, holding->size_bytes, 1});
  }
  return patches;
}

std::string LifeText(const Holding& holding) {
  if (holding.resident) return "resident: kept between steps";
  if (holding.live.end - holding.live.first == 1) return fmt::format("step {}", holding.live.first);
  return fmt::format("steps {} to {}", holding.live.first, holding.live.end - 1);
}

std::string TitleOf(const Patch& patch) {
  const Holding& holding = *patch.first;
  std::string title = holding.name;
  if (patch.count > 1) title += fmt::format(" and {} more", patch.count - 1);
  title += fmt::format("\n{}", Name(holding.category));
  if (patch.count == 1) {
    if (!holding.layer.empty()) title += fmt::format(" of layer {}", holding.layer);
    if (!holding.phase.empty()) title += fmt::format(", made in {}", holding.phase);
    if (!holding.shape.empty()) title += fmt::format("\n{}", holding.shape);
  }
  return fmt::format("{}\n{}\n{}\noffset {}", title, ExactBytes(patch.size_bytes),
                     LifeText(holding), CountText(static_cast<int64_t>(holding.offset)));
}

std::vector<LegendEntry> Legend() {
  std::vector<LegendEntry> entries;
  for (const Category category : kStackOrder) {
    entries.push_back({FillClass(category), std::string(Name(category))});
  }
  entries.push_back({"free", "free"});
  return entries;
}

void DrawAxes(Svg& svg, const Frame& frame, const PlanRecord& plan) {
  const ByteUnit unit = UnitFor(plan.arena_bytes);
  std::vector<double> ticks = RoundTicks(0, frame.y_high / unit.bytes, 6);
  for (double& tick : ticks) tick *= unit.bytes;
  DrawYTicks(svg, frame, ticks, unit.bytes);
  svg.Text(0, frame.area.y - 8, fmt::format("address, {}", unit.name), "muted");
  DrawPhases(svg, frame, plan.steps);
  DrawXTicks(svg, frame, StepTicks(frame.x_high, svg.width() > 500 ? 8 : 5), kPhaseBandHeight);
  svg.Text(frame.right(), svg.height() - 3, "steps of the plan", "muted", Anchor::kEnd);
}

// Draws the patch only if it is a sliver (`slivers`) or only if it is not (!`slivers`). Slivers
// have no edge, which would cover them.
void DrawPatch(Svg& svg, const Frame& frame, const Patch& patch, bool slivers) {
  constexpr double kSliver = 3;
  constexpr double kSeen = 0.7;
  const double left = frame.X(static_cast<double>(patch.first->live.first));
  const double right = frame.X(static_cast<double>(patch.first->live.end));
  const double top = frame.Y(static_cast<double>(patch.end_offset));
  const double height = frame.Y(static_cast<double>(patch.first->offset)) - top;
  if ((height < kSliver) != slivers) return;
  svg.Mark({left, top, right - left, std::max(height, kSeen)},
           (slivers ? "bar " : "held ") + FillClass(patch.first->category), TitleOf(patch));
}

}  // namespace

Svg ArenaMap(const PlanRecord& plan, double width) {
  const double height = width > 500 ? 460 : 340;
  const double legend = LegendHeight(width, Legend());
  Svg svg(width, legend + 22 + height + kPhaseBandHeight + 34,
          fmt::format("Map of the arena of {}: {} holdings in {}", plan.name, plan.holdings.size(),
                      ExactBytes(plan.arena_bytes)));
  Frame frame;
  frame.area = {44, legend + 22, width - 44 - 8, height};
  frame.x_high = static_cast<double>(std::max<size_t>(plan.steps.size(), 1));
  frame.y_high = static_cast<double>(std::max<size_t>(plan.arena_bytes, 1));
  DrawLegend(svg, {0, 0, width, 0}, Legend());
  DrawAxes(svg, frame, plan);
  svg.Rect(frame.area, "free");
  // Slivers last: the edges of other patches would hide them.
  const std::vector<Patch> patches = Patches(plan, kThin * frame.y_high / height);
  for (const bool slivers : {false, true}) {
    for (const Patch& patch : patches) DrawPatch(svg, frame, patch, slivers);
  }
  return svg;
}

}  // namespace thimble
