#include "tests/support/emulated_tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/tiles-inl.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

struct EmulatedTile {
  size_t rows = 0;
  size_t columns = 0;
  float numbers[kTileSide][kTileSide] = {};
};
using EmulatedTileFile = std::array<EmulatedTile, kNumTiles>;

EmulatedTileFile& TilesOfThread() {
  static thread_local EmulatedTileFile tiles;
  return tiles;
}

// A number of a pair, as tiles read it: too small ones are zero.
float HalfOfPair(float pair, bool second) {
  const auto bits = std::bit_cast<uint32_t>(pair);
  const uint32_t number = second ? bits & 0xFFFF0000U : bits << 16;
  const bool is_small = (number & 0x7F800000U) == 0;
  return std::bit_cast<float>(is_small ? number & 0x80000000U : number);
}

struct EmulatedUnit {
  template <int kTile>
  static void Load(const float* from, size_t stride) {
    EmulatedTile& tile = Used(kTile);
    for (size_t row = 0; row < tile.rows; ++row) {
      std::memcpy(tile.numbers[row], from + row * stride, tile.columns * sizeof(float));
    }
  }
  template <int kTile>
  static void Store(float* to, size_t stride) {
    const EmulatedTile& tile = Used(kTile);
    for (size_t row = 0; row < tile.rows; ++row) {
      std::memcpy(to + row * stride, tile.numbers[row], tile.columns * sizeof(float));
    }
  }
  template <int kTile>
  static void Clear() {
    for (auto& row : Used(kTile).numbers) std::fill_n(row, kTileSide, 0.0F);
  }
  template <int kSum, int kA, int kB>
  static void AddProduct() {
    const EmulatedTile& a = Used(kA);
    const EmulatedTile& b = Used(kB);
    EmulatedTile& sum = Used(kSum);
    THIMBLE_CHECK(a.columns == b.rows && a.rows == sum.rows && b.columns == sum.columns);
    for (size_t row = 0; row < sum.rows; ++row) {
      float sums[2][kTileSide] = {};
      for (size_t k = 0; k < a.columns; ++k) {
        for (const bool second : {false, true}) {
          const float factor = HalfOfPair(a.numbers[row][k], second);
          for (size_t c = 0; c < sum.columns; ++c) {
            sums[second][c] += factor * HalfOfPair(b.numbers[k][c], second);
          }
        }
      }
      for (size_t c = 0; c < sum.columns; ++c) {
        sum.numbers[row][c] += sums[0][c] + sums[1][c];
      }
    }
  }

 private:
  static EmulatedTile& Used(int index) {
    EmulatedTile& tile = TilesOfThread()[static_cast<size_t>(index)];
    THIMBLE_CHECK(tile.rows > 0, "tile {} is used outside a region", index);
    return tile;
  }
};

void ConfigureEmulated(const TileShape& shape) {
  EmulatedTileFile& tiles = TilesOfThread();
  THIMBLE_CHECK(tiles[0].rows == 0, "a region within a region");
  THIMBLE_CHECK(shape.rows >= 1 && shape.rows <= kTileSide);
  THIMBLE_CHECK(shape.depth >= 1 && shape.depth <= kTileSide);
  const auto set = [&](int tile, size_t rows, size_t columns) {
    tiles[static_cast<size_t>(tile)].rows = rows;
    tiles[static_cast<size_t>(tile)].columns = columns;
  };
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) set(kSumTiles[i][j], shape.rows, kTileSide);
    set(kATiles[i], shape.rows, shape.depth);
    set(kBTiles[i], shape.depth, kTileSide);
  }
}

void ReleaseEmulated() { TilesOfThread() = {}; }

constexpr TileKernels kEmulatedKernels{&ConfigureEmulated, &ReleaseEmulated,
                                       &MultiplyTilesWith<EmulatedUnit>};

}  // namespace

EmulatedTiles::EmulatedTiles() {
  // The best target is chosen once; that must not happen while tiles are emulated.
  THIMBLE_CHECK(!ActiveSimdTarget().empty());
  if (!HasTileKernels()) ReplaceTileKernels(&kEmulatedKernels);
}

EmulatedTiles::~EmulatedTiles() {
  THIMBLE_CHECK(PinSimdTarget("auto").ok());
  ReplaceTileKernels(nullptr);
}

}  // namespace thimble
