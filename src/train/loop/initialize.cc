#include "thimble/train/loop/initialize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "thimble/base/philox.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/train/loop/rewiring.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

float Draw(const InitRule& rule, const RandomSource& source, uint32_t tensor, uint64_t element) {
  const auto scale = static_cast<float>(rule.scale);
  switch (rule.kind) {
    case InitRule::Kind::kConstant:
      return scale;
    case InitRule::Kind::kNormal: {
      const auto words = source.Words(0, tensor, element);
      return scale * NormalFloat(words[0], words[1]);
    }
    case InitRule::Kind::kUniform:
      return scale * (2 * UniformFloat(source.Words(0, tensor, element)[0]) - 1);
  }
  return 0;
}

// Draws all elements of a tensor, a piece at a time; of a packed one those that are active, which
// get the numbers that they would have in a dense tensor.
void Draw(const InitRule& rule, const RandomSource& source, uint32_t tensor,
          const TensorView& view) {
  std::array<float, kNumbersPerPiece> numbers;
  const Numbers stored = NumbersOf(StoredNumbers(view));
  const auto elements = static_cast<size_t>(view.shape.elements());
  size_t done = 0;
  for (size_t begin = 0; begin < elements; begin += kNumbersPerPiece) {
    size_t count = 0;
    for (size_t i = begin; i < std::min(begin + kNumbersPerPiece, elements); ++i) {
      if (view.is_packed() && !view.packed.IsActive(i)) continue;
      numbers[count++] = Draw(rule, source, tensor, i);
    }
    EncodeNumbers(numbers.data(), count, stored + done);
    done += count;
  }
}

}  // namespace

void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed,
                         const SparsitySpec& sparsity) {
  for (const Resident& resident : executor.program().residents.residents) {
    if (resident.category != Category::kOptimizer && resident.category != Category::kGradients) {
      continue;
    }
    const auto bytes = executor.ResidentBytes(resident.name);
    std::memset(bytes.data(), 0, bytes.size());
  }
  InitializeSparsity(executor, sparsity, seed);
  const RandomSource source(seed, RandomPurpose::kInit);
  std::map<std::string, TensorView> views;
  for (const StoredTensor& tensor : PersistentTensors(executor, TensorSet::kWeights)) {
    views.emplace(tensor.name, tensor.view);
  }
  for (size_t tensor = 0; tensor < inits.size(); ++tensor) {
    const auto found = views.find(inits[tensor].name);
    THIMBLE_CHECK(found != views.end(), "no tensor '{}'", inits[tensor].name);
    Draw(inits[tensor], source, static_cast<uint32_t>(tensor), found->second);
  }
  executor.StoreResidents();
}

}  // namespace thimble
