// LayerTypes: the only table of the layers a model file can have. Parsing, checking, building and
// the test of the documentation use it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/model/network_builder.h"

namespace thimble {

// A number that a layer takes.
struct NumberKey {
  std::string_view name;
  int64_t least = 1;
  int64_t most = 1;
  std::optional<int64_t> fallback = std::nullopt;  // nullopt: required
};

// Maximum layers after expanding blocks and repetitions: somewhat more than the deepest built-in
// network has, and planned within seconds.
inline constexpr int64_t kMaxModelLayers = 4000;
// A key of every layer and every use of a block.
inline constexpr NumberKey kRepeatKey{"repeat", 1, kMaxModelLayers, 1};
inline constexpr NumberKey kFirstKey{"first", 0, 1'000'000, 0};

// What one layer adds to the network. Doubles, because sizes are not yet checked and integers could
// overflow.
struct LayerSize {
  double parameters = 0;
  double operations_per_output = 1;  // multiplications and additions per element
};

// One layer, its numbers in the order of the type's keys.
struct LayerCall {
  const std::string& name;
  ValueId x;
  ValueId other;  // second operand of a sum
  std::span<const int64_t> numbers;
};

struct LayerType {
  std::string_view name;
  bool has_parameters = false;  // requires a name
  bool is_sum = false;          // requires `with`
  std::vector<NumberKey> keys = {};
  LayerSize (*size)(const Shape& x, std::span<const int64_t> numbers) = nullptr;
  ValueId (*build)(NetworkBuilder& net, const LayerCall& call) = nullptr;
};

const std::vector<LayerType>& LayerTypes();
// nullptr if there is none.
const LayerType* FindLayerType(std::string_view name);

// "1 to 65536"
std::string RangeOf(const NumberKey& key);

}  // namespace thimble
