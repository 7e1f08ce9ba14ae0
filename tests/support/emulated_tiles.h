// EmulatedTiles: lets machines without tiles (device/cpu/gemm/tiles.h) run all code around them.
#pragma once

namespace thimble {

// As long as it exists, the SIMD target "amx" is available if "avx512bf16" is: with the processor's
// tiles, or with plain code that computes the same. Goes back to the best target in the end. Must
// not be created or destroyed while kernels run.
class EmulatedTiles {
 public:
  EmulatedTiles();
  ~EmulatedTiles();
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;
};

}  // namespace thimble
