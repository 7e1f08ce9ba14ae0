// Runs the threads of a kernel, one block after the other. The threads of a block are fibers: each
// runs until it must wait for others, and who runs next is drawn at random (THIMBLE_GPU_ORDER).
//
// What cannot happen on a GPU, or must not, ends the program with a message that says where:
// threads that wait for each other, a barrier that only some threads reach, a shuffle from a lane
// that takes no part.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <vector>

namespace gpu_emulator {

inline constexpr int kWarpLanes = 32;
inline constexpr unsigned kMaxThreads = 1024;

struct Grid {
  const char* kernel = "";
  dim3 blocks;
  dim3 threads;
  size_t shared_bytes = 0;  // dynamic
};

// Runs `thread` once for each thread of each block.
void RunGrid(const Grid& grid, const std::function<void()>& thread);

// Prints where the calling thread is, and aborts.
[[noreturn]] void Fail(const char* message);

// ---- Called by threads

// Where a thread waits, for messages.
struct Site {
  const char* function;
  std::source_location where;
};

struct Votes {
  int all = 0;        // threads that were at the barrier
  int in_favour = 0;  // those whose vote was true
};

// Waits until all threads of the block that have not ended are here, or until `threads` are.
constexpr int kAllThreads = 0;
Votes WaitAtBarrier(const Site& site, int barrier, int threads, bool vote);

// What the lanes of a warp do together.
struct Lanes {
  uint32_t taking_part = 0;
  std::array<void*, kWarpLanes> own{};  // what each of them passed
};
// Whether what the lanes wrote before is visible to all of them afterwards.
enum class Memory { kUnordered, kOrdered };
// Waits until all lanes of `mask` that have not ended are here; the last one calls `act` for all.
void MeetLanes(const Site& site, uint32_t mask, Memory memory, void* own,
               void (*act)(const Lanes&));

// The calling thread's place in its warp.
int Lane();

// Lets other threads run while this one waits for them in a loop. If none of them does anything
// that could end the wait (CountProgress), the program fails.
void Pause(const Site& site);
void CountProgress();

// ---- Copies that complete when the thread waits for them (cp.async)

struct Copy {
  void* to;
  const void* from;
  size_t bytes;   // that are read
  size_t filled;  // that are written: the others become zero
};
void EnqueueCopy(const Copy& copy);
void EndBatchOfCopies();
// Completes all but the last `batches`.
void CompleteCopies(size_t batches);
void CompleteAllCopies();

}  // namespace gpu_emulator

// Names of CUDA C++.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
