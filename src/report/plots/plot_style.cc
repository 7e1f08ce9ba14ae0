#include "thimble/report/plots/plot_style.h"

#include <fmt/format.h>

namespace thimble {
namespace {

// Paul Tol's "bright" scheme, which is safe for all common kinds of colour blindness; a little
// lighter on a dark background.
struct Colours {
  std::string_view ink, muted, grid, ground, panel;
  std::string_view green, cyan, purple, red, blue, yellow, grey;
};
constexpr Colours kLightColours = {"#1c2128", "#5b6470", "#dfe3e8", "#ffffff",
                                   "#f3f5f7", "#228833", "#66ccee", "#aa3377",
                                   "#ee6677", "#4477aa", "#ccbb44", "#bbbbbb"};
constexpr Colours kDarkColours = {"#e6e9ed", "#9aa4b0", "#2e353e", "#14181d", "#1e242b", "#3fa650",
                                  "#66ccee", "#c8559a", "#f07f8d", "#5f93cc", "#d6c75a", "#7d858e"};

std::string_view ColourOf(const Colours& colours, Category category) {
  switch (category) {
    case Category::kModel:
      return colours.green;
    case Category::kGradients:
      return colours.red;
    case Category::kOptimizer:
      return colours.cyan;
    case Category::kActivations:
      return colours.blue;
    case Category::kTransient:
      return colours.yellow;
    case Category::kData:
      return colours.purple;
  }
  return colours.grey;
}

std::string LineRules(const Colours& colours) {
  const std::array<std::string_view, kNumLineColours> order = {
      colours.blue, colours.red, colours.green, colours.purple, colours.yellow, colours.cyan};
  std::string rules;
  for (size_t index = 0; index < 2 * kNumLineColours; ++index) {
    rules += fmt::format(".plot .line-{0}{{stroke:{1}{2}}}\n.plot .ink-{0}{{fill:{1}}}\n", index,
                         order[index % kNumLineColours],
                         index < kNumLineColours ? "" : ";stroke-dasharray:5 3");
  }
  return rules;
}

}  // namespace

std::string FillClass(Category category) { return fmt::format("fill-{}", Name(category)); }

std::string LineClass(size_t index) {
  return fmt::format("line line-{}", index % (2 * kNumLineColours));
}
std::string InkClass(size_t index) { return fmt::format("ink-{}", index % (2 * kNumLineColours)); }

std::string PlotRules(Theme theme) {
  const Colours& colours = theme == Theme::kLight ? kLightColours : kDarkColours;
  std::string rules = fmt::format(
      ".plot{{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif;"
      "font-size:11px;font-variant-numeric:tabular-nums}}\n"
      ".plot text{{fill:{0};stroke:none}}\n"
      ".plot .muted{{fill:{1}}}\n"
      ".plot .strong{{font-weight:600}}\n"
      ".plot .halo{{paint-order:stroke;stroke:{3};stroke-width:3px;stroke-linejoin:round}}\n"
      ".plot .grid{{stroke:{2};stroke-width:1}}\n"
      ".plot .axis{{stroke:{1};stroke-width:1}}\n"
      ".plot .guide{{stroke:{0};stroke-width:1;stroke-dasharray:3 3}}\n"
      ".plot .panel{{fill:{4}}}\n"
      ".plot .band{{fill:{2}}}\n"
      ".plot .free{{fill:{4};stroke:{2};stroke-width:1}}\n"
      ".plot .line{{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}}\n"
      ".plot .dense{{stroke-width:1.1}}\n"
      ".plot .thin{{stroke-width:1;opacity:.6}}\n"
      ".plot .held{{stroke:{3};stroke-width:.5}}\n"
      ".plot .hit{{fill:{0};fill-opacity:0}}\n"
      ".plot .hit.on{{fill-opacity:.14}}\n"
      ".plot .held.on,.plot .bar.on{{stroke:{0};stroke-width:1.5}}\n"
      ".plot .total{{fill:{1}}}\n"
      ".plot .saved{{fill:{5}}}\n"
      ".plot .cost{{fill:{6}}}\n"
      ".plot .fill-gaps{{fill:{7}}}\n",
      colours.ink, colours.muted, colours.grid, colours.ground, colours.panel, colours.green,
      colours.red, colours.grey);
  for (const Category category : kStackOrder) {
    rules +=
        fmt::format(".plot .{}{{fill:{}}}\n", FillClass(category), ColourOf(colours, category));
  }
  return rules + LineRules(colours);
}

}  // namespace thimble
