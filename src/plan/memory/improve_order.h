// Local search over packing orders: what remains to be gained after the greedy orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "thimble/plan/memory/pack_items.h"

namespace thimble {

// Starts from a complete packing and changes the order in which items are packed until the peak is
// at most `goal_bytes` or the work is used up. The result is never worse than `start`.
// Deterministic: the work is counted in packings whose number depends on the number of items alone.
Packing ImproveOrder(std::span<const PackItem> items, Packing start, size_t goal_bytes);

}  // namespace thimble
