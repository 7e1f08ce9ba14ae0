// A packing order built from the bottom up; the greedy orders sort by one number.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/plan/memory/pack_items.h"

namespace thimble {

// Which of the items that fit into a valley goes first.
enum class ValleyChoice { kLongest, kLargest };

// The used height over time is a skyline. Repeatedly, an item whose live range is within the lowest
// valley is put there; if no item fits, the valley is filled up to its lower neighbour. Returns the
// items in the order in which they were put. Items with an empty live range come last.
std::vector<uint32_t> MakeSkylineOrder(std::span<const PackItem> items, ValleyChoice choice);

}  // namespace thimble
