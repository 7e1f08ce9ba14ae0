// How many weights each tensor gains, and the next threshold: decisions over counts, all in
// integers. constexpr: CPU and GPU share them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "thimble/ops/rewire/rewire_draw.h"

namespace thimble {

// Values of the attribute `method`.
inline constexpr int64_t kRewireDsr = 0;
inline constexpr int64_t kRewireSet = 1;

// One tensor during a rewiring.
struct RewireTensor {
  int64_t first_block = 0;  // in the pattern
  int64_t elements = 0;
  int64_t active = 0;  // before
  int64_t kept = 0;
  int64_t grown = 0;
  int64_t share = 0;  // of what is left to place, in one round

  constexpr int64_t dropped() const { return active - kept; }
  // Positions that could grow: inactive before, so not those just dropped.
  constexpr int64_t room() const { return elements - active; }
  constexpr bool is_open() const { return grown < room(); }
};

// The order in which weights are kept: the smallest key first. Larger magnitudes have smaller keys;
// NaN counts as infinite. Of equal keys the lower position comes first.
constexpr uint32_t KeepKey(float weight) {
  constexpr uint32_t kInfinity = 0x7F800000U;
  const uint32_t magnitude = std::bit_cast<uint32_t>(weight) & 0x7FFFFFFFU;
  return ~(magnitude < kInfinity ? magnitude : kInfinity);
}

// Keeps thresholds finite and positive if a quota cannot be reached, or if the input is not.
constexpr float ClampThreshold(float threshold) {
  constexpr float kLeast = 1e-30F;
  constexpr float kMost = 1e30F;
  if (!(threshold > kLeast)) return kLeast;  // also NaN
  return threshold < kMost ? threshold : kMost;
}

// More than 1.1 quotas below the threshold: half of it; fewer than 0.9: twice.
constexpr float NextThreshold(float threshold, int64_t below, int64_t quota) {
  if (10 * below > 11 * quota) return ClampThreshold(threshold / 2);
  return ClampThreshold(10 * below < 9 * quota ? threshold * 2 : threshold);
}

// SET: how many of its weights a tensor drops: this fraction, but one stays, and no more than can
// grow elsewhere.
constexpr int64_t DropsOfSet(double fraction, const RewireTensor& tensor) {
  const double wanted = fraction * static_cast<double>(tensor.active) + 0.5;
  const int64_t most = tensor.active - 1 < tensor.room() ? tensor.active - 1 : tensor.room();
  return wanted < static_cast<double>(most) ? static_cast<int64_t>(wanted) : most;
}

// The shares of one round: in proportion to the weights kept, for tensors that have room. Returns
// what rounding leaves, which may be negative.
constexpr int64_t RoundShares(std::span<RewireTensor> tensors, int64_t left) {
  int64_t all_kept = 0;
  for (const RewireTensor& tensor : tensors) all_kept += tensor.is_open() ? tensor.kept : 0;
  int64_t rest = left;
  for (RewireTensor& tensor : tensors) {
    const int64_t kept = tensor.is_open() ? tensor.kept : 0;
    tensor.share = (2 * kept * left + all_kept) / (2 * all_kept);  // to the nearest, halves up
    rest -= tensor.share;
  }
  return rest;
}

// Gives what rounding left to a random tensor with room. One whose share would become negative
// gives all that it has; the tensors after it give the others.
constexpr void GiveRest(std::span<RewireTensor> tensors, int64_t rest, const RewireDraw& draw,
                        uint32_t round) {
  int64_t open = 0;
  for (const RewireTensor& tensor : tensors) open += tensor.is_open() ? 1 : 0;
  int64_t before = draw.ChooseTensor(round, open);
  size_t chosen = 0;
  for (;; ++chosen) {
    if (tensors[chosen].is_open() && before-- == 0) break;
  }
  for (size_t i = chosen; rest != 0; i = (i + 1) % tensors.size()) {
    const int64_t change = rest > -tensors[i].share ? rest : -tensors[i].share;
    tensors[i].share += change;
    rest -= change;
  }
}

// DSR: how many weights each tensor grows, `left` in all. Tensors take their share as far as they
// have room; what they leave is shared out again among those that still have some. Requires that
// there is room for all, and a weight kept in each tensor.
constexpr void ShareOut(std::span<RewireTensor> tensors, int64_t left, const RewireDraw& draw) {
  for (RewireTensor& tensor : tensors) tensor.grown = 0;
  for (uint32_t round = 0; left > 0; ++round) {
    GiveRest(tensors, RoundShares(tensors, left), draw, round);
    for (RewireTensor& tensor : tensors) {
      const int64_t most = tensor.room() - tensor.grown;
      const int64_t taken = tensor.share < most ? tensor.share : most;
      tensor.grown += taken;
      left -= taken;
    }
  }
}

}  // namespace thimble
