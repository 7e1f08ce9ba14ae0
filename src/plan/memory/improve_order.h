// Local search over packing orders, after the greedy orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "thimble/plan/memory/pack_items.h"

namespace thimble {

// Starts from a complete packing and changes the order in which items are packed until the peak is
// at most `goal_bytes` or the work limit is reached. The result is never worse than `start`.
// Deterministic: the limit is a number of packings that depends only on the number of items.
Packing ImproveOrder(std::span<const PackItem> items, Packing start, size_t goal_bytes);

}  // namespace thimble
