// Ids as distinct types: a ValueId cannot be passed as a NodeId.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace thimble {

template <class Tag>
class StrongId {
 public:
  constexpr StrongId() = default;  // an invalid id
  constexpr explicit StrongId(size_t index) : index_(static_cast<uint32_t>(index)) {}

  constexpr bool valid() const { return index_ != kNone; }
  constexpr size_t index() const { return index_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index_ = kNone;
};

}  // namespace thimble
