// A packing order that grows from the ground up, where the greedy orders sort by one number.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/plan/memory/pack_items.h"

namespace thimble {

// Which of the items that fit into a valley goes first.
enum class ValleyChoice { kLongest, kLargest };

// Draws the used height over time as a skyline. Again and again its lowest valley receives an item
// that lives within the valley; a valley that no item fits into is filled up to its lower
// neighbour. Returns the items in the order of their turns. Items that live for no moment come
// last.
std::vector<uint32_t> MakeSkylineOrder(std::span<const PackItem> items, ValleyChoice choice);

}  // namespace thimble
