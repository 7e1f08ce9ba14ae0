// Colours and fonts of all plots: one palette, the same for a category wherever it is drawn.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "thimble/plan/plan.h"

namespace thimble {

enum class Theme { kLight, kDark };

// From the bottom of a stack to its top: what stays for the whole step first.
inline constexpr std::array<Category, kNumCategories> kStackOrder = {
    Category::kModel,     Category::kOptimizer,   Category::kData,
    Category::kGradients, Category::kActivations, Category::kTransient};

// The class of shapes in a category's colour: "fill-model", "fill-gaps".
std::string FillClass(Category category);
inline constexpr std::string_view kGapsClass = "fill-gaps";

// Classes of lines by number, "line-0", "line-1", …; after as many come dashes.
inline constexpr size_t kNumLineColours = 6;
std::string LineClass(size_t index);
// The same colours for dots and labels.
std::string InkClass(size_t index);

// CSS rules for the plots. Hexadecimal colours only: not every reader of SVG knows variables.
std::string PlotRules(Theme theme);

}  // namespace thimble
