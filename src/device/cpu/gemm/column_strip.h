// Strips of columns: the layout of B for the micro-kernel.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/gemm/packer.h"

namespace thimble {

// Packs rows `piece`, inside `depth`, of strip `strip` of the columns of B. `packed` is the address
// of the first strip of these columns, with its whole depth; the others follow without gaps, each
// tile.columns wide, the last one tile.lanes if that suffices.
void PackColumnStrip(const Packer& b, const MicroTile& tile, IndexRange columns, size_t strip,
                     IndexRange depth, IndexRange piece, float* packed);

}  // namespace thimble
