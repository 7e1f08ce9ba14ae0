#include "tests/support/case_draw.h"

#include <algorithm>
#include <vector>

namespace thimble {
namespace {

// FNV-1a: each op has its own stream, independent of the order of the list.
uint32_t StreamOf(std::string_view op) {
  uint32_t hash = 2166136261U;
  for (const char letter : op) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

}  // namespace

CaseDraw::CaseDraw(uint64_t seed, std::string_view op, uint32_t number)
    : source_(seed, RandomPurpose::kTest), number_(number), stream_(StreamOf(op)) {}

int64_t CaseDraw::Between(int64_t least, int64_t most) {
  return least + UniformBelow(Word(), static_cast<uint32_t>(most - least + 1));
}

int64_t CaseDraw::Size(int64_t most) {
  if (OneIn(2)) return Between(1, most);
  const int64_t power = int64_t{1} << Between(0, 7);
  return std::clamp<int64_t>(power + Between(-1, 1), 1, most);
}

Shape CaseDraw::AnyShape(size_t least_rank) {
  const auto rank = static_cast<size_t>(Between(static_cast<int64_t>(least_rank), 4));
  // Chunks of work have 16,384 elements.
  const int64_t most = OneIn(6) ? 60000 : OneIn(2) ? 2000 : 60;
  std::vector<int64_t> dims(rank, 1);
  int64_t room = most;
  for (size_t i = rank; i-- > 0 && room > 1;) {
    dims[i] = i == 0 ? Between(1, room) : Size(std::min<int64_t>(room, 300));
    room /= dims[i];
  }
  if (OneIn(24)) dims[static_cast<size_t>(Between(0, static_cast<int64_t>(rank) - 1))] = 0;
  return Shape(dims);
}

}  // namespace thimble
