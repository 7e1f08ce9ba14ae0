// The shared memory of blocks: a range of addresses in which each variable of the program keeps its
// place. Blocks run one after the other; at the beginning of each it is filled with NaN.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpu_emulator {

// As the A100: the most shared memory of a block, and what its variables may take.
inline constexpr size_t kMaxSharedBytes = 163 << 10;
inline constexpr size_t kMaxStaticSharedBytes = 48 << 10;

// A shared variable. The first thread of a block that comes to its declaration clears it.
class SharedVariable {
 public:
  explicit SharedVariable(size_t size_bytes);

  void* place() const { return place_; }
  void Enter();

 private:
  size_t size_bytes_;
  void* place_;
  uint64_t block_ = 0;  // the last one that used it
};

// In place of a declaration: a struct with the variable as its only member is its type.
template <class Struct>
struct SharedStruct {
  SharedVariable variable{sizeof(Struct)};
  Struct& contents = *static_cast<Struct*>(variable.place());

  Struct& Enter() {
    variable.Enter();
    return contents;
  }
};

// Dynamic shared memory.
std::byte* DynamicShared();
// Before a block with so much of it.
void BeginSharedMemory(size_t dynamic_bytes);

// Addresses in shared memory as PTX has them, 32 bits.
uint32_t SharedAddress(const void* place);
void* SharedPlace(uint32_t address);

}  // namespace gpu_emulator
