// StorageTypes: the types in which the numbers of a program are stored, by category, and the levers
// that choose them: `--precision fp16` for all categories, `--store optimizer=q8` for one of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/program.h"

namespace thimble {

enum class StoredCategory : uint8_t {
  kModel,
  kOptimizer,
  kGradients,
  kActivations,
  kActivationGradients,
};
inline constexpr size_t kNumStoredCategories = 5;
std::string_view Name(StoredCategory category);

// Without a type: the numbers of the category stay as they are.
struct StorageTypes {
  using Type = std::optional<DType>;
  std::array<Type, kNumStoredCategories> types = {};

  Type operator[](StoredCategory category) const { return types[static_cast<size_t>(category)]; }
  void Set(StoredCategory category, DType type) { types[static_cast<size_t>(category)] = type; }
  friend bool operator==(const StorageTypes&, const StorageTypes&) = default;
};

// The types of --precision and --store. kBadInput for wrong texts.
Result<StorageTypes> ParsePrecision(std::string_view precision);
Result<void> ParseStore(std::string_view store, StorageTypes& types);

// "fp16", as options have it.
std::string_view OptionName(DType type);
// "all numbers fp16", "optimizer q8", for people.
std::string Describe(const StorageTypes& types);

// Whether the optimizer changes numbers that are stored in fewer than 32 bits.
bool HasShortState(const StorageTypes& types);

// Gives all values of the graphs their types. Inputs stay as they are, and so does everything that
// an op reads or writes in one type only.
void StoreAs(const StorageTypes& types, const OpRegistry& ops, std::vector<NamedGraph>& graphs);

}  // namespace thimble
