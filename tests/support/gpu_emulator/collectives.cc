#include "tests/support/gpu_emulator/collectives.h"

#include <algorithm>

namespace gpu_emulator {
namespace {

template <class Own, class Body>
void ForLanes(const Lanes& lanes, const Body& body) {
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    if ((lanes.taking_part >> lane & 1) == 0) continue;
    body(lane, *static_cast<Own*>(lanes.own[static_cast<size_t>(lane)]));
  }
}

void ShuffleLanes(const Lanes& lanes) {
  std::array<uint64_t, kWarpLanes> bits{};
  ForLanes<Shuffled>(
      lanes, [&](int lane, const Shuffled& own) { bits[static_cast<size_t>(lane)] = own.bits; });
  ForLanes<Shuffled>(lanes, [&](int /*lane*/, Shuffled& own) {
    own.bits = bits[static_cast<size_t>(own.from)];
    // Tells the lane that nobody passed this value.
    if ((lanes.taking_part >> own.from & 1) == 0) own.from = -1;
  });
}

uint32_t Combine(uint32_t a, uint32_t b, Reduction how) {
  const auto signed_a = static_cast<int32_t>(a);
  const auto signed_b = static_cast<int32_t>(b);
  switch (how) {
    case Reduction::kAdd:
      return a + b;
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kSignedMin:
      return signed_a < signed_b ? a : b;
    case Reduction::kSignedMax:
      return signed_a < signed_b ? b : a;
    case Reduction::kAnd:
      return a & b;
    case Reduction::kXor:
      return a ^ b;
    default:
      return a | b;
  }
}

void ReduceLanes(const Lanes& lanes) {
  bool is_first = true;
  uint32_t result = 0;
  ForLanes<Reduced>(lanes, [&](int lane, const Reduced& own) {
    const uint32_t word = own.how == Reduction::kBallot ? own.word << lane : own.word;
    result = is_first ? word : Combine(result, word, own.how);
    is_first = false;
  });
  ForLanes<Reduced>(lanes, [&](int /*lane*/, Reduced& own) { own.word = result; });
}

}  // namespace

void Shuffle(const Site& site, uint32_t mask, Shuffled& own) {
  MeetLanes(site, mask, Memory::kUnordered, &own, &ShuffleLanes);
  if (own.from < 0) Fail("a shuffle reads a lane that takes no part in it");
}

uint32_t Reduce(const Site& site, uint32_t mask, uint32_t word, Reduction how) {
  Reduced own{.word = word, .how = how};
  MeetLanes(site, mask, Memory::kUnordered, &own, &ReduceLanes);
  return own.word;
}

void SyncLanes(const Site& site, uint32_t mask) {
  MeetLanes(site, mask, Memory::kOrdered, nullptr, [](const Lanes& /*lanes*/) {});
}

}  // namespace gpu_emulator
