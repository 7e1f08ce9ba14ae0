#include "thimble/device/cpu/gemm/tiles.h"

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/tiles-inl.h"
#include "thimble/device/cpu/simd_target.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdint>

namespace thimble {
namespace {

// Shallower tiles leave more than half of the processor's multipliers idle.
constexpr size_t kLeastTileDepth = 8;

#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

// Not the intrinsics: they require that the compiler may use AMX in the whole function.
struct AmxUnit {
  template <int kTile>
  static void Load(const float* from, size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride * sizeof(float)), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static void Store(float* to, size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(stride * sizeof(float)), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static void Clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kSum, int kA, int kB>
  static void AddProduct() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};

// The operand of ldtilecfg.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

void ConfigureAmx(const TileShape& shape) {
  TileConfiguration configuration;
  const auto set = [&](int tile, size_t rows, size_t columns) {
    configuration.rows[tile] = static_cast<uint8_t>(rows);
    configuration.row_bytes[tile] = static_cast<uint16_t>(columns * sizeof(float));
  };
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) set(kSumTiles[i][j], shape.rows, kTileSide);
    set(kATiles[i], shape.rows, shape.depth);
    set(kBTiles[i], shape.depth, kTileSide);
  }
  asm volatile("ldtilecfg %0" : : "m"(configuration) : "memory");
}

void ReleaseAmx() { asm volatile("tilerelease" : : : "memory"); }

// The system saves the tiles of a process's threads only if asked to; before, using them is an
// error. It refuses if a thread's signal stack is too small for them.
bool RequestAmx() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr TileKernels kAmxKernels{&ConfigureAmx, &ReleaseAmx, &MultiplyTilesWith<AmxUnit>};

const TileKernels* MachineTileKernels() {
  static const bool has_permission = RequestAmx();
  return has_permission ? &kAmxKernels : nullptr;
}

#else

const TileKernels* MachineTileKernels() { return nullptr; }

#endif

// Null: the machine's.
const TileKernels*& ReplacedTileKernels() {
  static const TileKernels* kernels = nullptr;
  return kernels;
}

const TileKernels* AvailableTileKernels() {
  const TileKernels* replaced = ReplacedTileKernels();
  return replaced != nullptr ? replaced : MachineTileKernels();
}

}  // namespace

size_t TileDepth(size_t depth) {
  for (size_t divisor = kTileSide; divisor >= kLeastTileDepth; --divisor) {
    if (depth > 0 && depth % divisor == 0) return divisor;
  }
  return 0;
}

TileRegion::TileRegion(const TileShape& shape) {
  THIMBLE_CHECK(MultipliesTiles(), "SIMD target {} has no tiles", ActiveSimdTarget());
  AvailableTileKernels()->configure(shape);
}

TileRegion::~TileRegion() { AvailableTileKernels()->release(); }

void MultiplyTiles(const TileProduct& product) { AvailableTileKernels()->multiply(product); }

bool HasTileKernels() { return AvailableTileKernels() != nullptr; }

void ReplaceTileKernels(const TileKernels* kernels) { ReplacedTileKernels() = kernels; }

}  // namespace thimble
