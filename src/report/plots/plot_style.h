// Colours and fonts of all plots: one palette, the same for a category wherever it is drawn.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "thimble/plan/plan.h"

namespace thimble {

enum class Theme { kLight, kDark };

// From the bottom of a stack to its top: categories that live for the whole step first.
inline constexpr std::array<Category, kNumCategories> kStackOrder = {
    Category::kModel,     Category::kOptimizer,   Category::kData,
    Category::kGradients, Category::kActivations, Category::kTransient};

// The CSS class for a category's colour: "fill-model".
std::string FillClass(Category category);
inline constexpr std::string_view kGapsClass = "fill-gaps";

// CSS classes of lines by number, "line-0", "line-1", …; with dashes when the colours run out.
inline constexpr size_t kNumLineColours = 6;
std::string LineClass(size_t index);
// The same colours for dots and labels.
std::string InkClass(size_t index);

// CSS rules for the plots. Colours are hexadecimal: not every SVG viewer supports variables.
std::string PlotRules(Theme theme);

}  // namespace thimble
