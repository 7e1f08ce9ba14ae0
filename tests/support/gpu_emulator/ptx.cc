#include "tests/support/gpu_emulator/ptx.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>
#include <bit>
#include <string>

#include "tests/support/gpu_emulator/block.h"
#include "tests/support/gpu_emulator/races.h"
#include "tests/support/gpu_emulator/shared_memory.h"

namespace gpu_emulator {
namespace {

// %0, %1 and so on.
struct Call {
  const Site& site;
  const Operand* operands;

  template <class T>
  T In(size_t i) const {
    return operands[i].as<T>();
  }
  template <class T>
  T& Out(size_t i) const {
    return *static_cast<T*>(operands[i].place);
  }
  void* Shared(size_t i) const { return SharedPlace(In<uint32_t>(i)); }
};

constexpr uint32_t kAllLanes = 0xFFFFFFFFU;

const Call& CallOf(const Lanes& lanes, int lane) {
  return *static_cast<const Call*>(lanes.own[static_cast<size_t>(lane)]);
}

// The instruction for a whole warp; `Act` does it for all lanes.
template <void (*Act)(const Lanes&)>
void ByAllLanes(const Call& call) {
  Call own = call;
  MeetLanes(call.site, kAllLanes, Memory::kUnordered, &own, [](const Lanes& lanes) {
    if (lanes.taking_part != kAllLanes)
      Fail("an instruction for all lanes of a warp, not all are there");
    Act(lanes);
  });
}

// ---- Products. Sums are rounded once, where a tensor core rounds several times.

float FromTf32(uint32_t word, int /*half*/) { return std::bit_cast<float>(word & 0xFFFFE000U); }
uint16_t HalfWord(uint32_t word, int half) { return static_cast<uint16_t>(word >> (16 * half)); }
float FromF16(uint32_t word, int half) {
  return __half2float(std::bit_cast<__half>(HalfWord(word, half)));
}
float FromBf16(uint32_t word, int half) {
  return __bfloat162float(std::bit_cast<__nv_bfloat16>(HalfWord(word, half)));
}

// mma.sync m16n8: operands are 4 sums, 4 words of A, 2 words of B; kPerWord numbers in a word.
template <float (*Decode)(uint32_t, int), int kPerWord>
void Multiply(const Lanes& lanes) {
  constexpr int kInner = 8 * kPerWord;
  std::array<std::array<double, kInner>, 16> a;
  std::array<std::array<double, 8>, kInner> b;
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const Call& call = CallOf(lanes, lane);
    const int row = lane / 4;
    for (int half = 0; half < kPerWord; ++half) {
      for (int i = 0; i < 4; ++i) {
        const int inner = (lane % 4 + i / 2 * 4) * kPerWord + half;
        a[row + i % 2 * 8][inner] = Decode(call.In<uint32_t>(4 + i), half);
      }
      for (int i = 0; i < 2; ++i) {
        const int inner = (lane % 4 + i * 4) * kPerWord + half;
        b[inner][lane / 4] = Decode(call.In<uint32_t>(8 + i), half);
      }
    }
  }
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      float& sum = CallOf(lanes, lane).Out<float>(i);
      double total = sum;
      for (int inner = 0; inner < kInner; ++inner) {
        total += a[lane / 4 + i / 2 * 8][inner] * b[inner][lane % 4 * 2 + i % 2];
      }
      sum = static_cast<float>(total);
    }
  }
}

// ldmatrix x4: operands are 4 words and an address. Lane i passes row i % 8 of block i / 8.
const uint32_t* MatrixRow(const Lanes& lanes, int block, int row) {
  return static_cast<const uint32_t*>(CallOf(lanes, 8 * block + row).Shared(4));
}
void LoadMatrices(const Lanes& lanes) {
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int block = 0; block < 4; ++block) {
      CallOf(lanes, lane).Out<uint32_t>(block) = MatrixRow(lanes, block, lane / 4)[lane % 4];
    }
  }
}
void LoadTransposed(const Lanes& lanes) {
  const auto number = [&](int block, int row, int column) {
    return uint32_t{HalfWord(MatrixRow(lanes, block, row)[column / 2], column % 2)};
  };
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int block = 0; block < 4; ++block) {
      const int row = lane % 4 * 2;
      CallOf(lanes, lane).Out<uint32_t>(block) =
          number(block, row, lane / 4) | number(block, row + 1, lane / 4) << 16;
    }
  }
}

// ---- Asynchronous copies: operands are the address, the source and the bytes that are read.

template <size_t kBytes>
void CopyAsync(const Call& call) {
  EnqueueCopy({.to = call.Shared(0),
               .from = call.In<const void*>(1),
               .bytes = call.In<uint32_t>(2),
               .filled = kBytes});
}
void EndBatch(const Call& /*call*/) { EndBatchOfCopies(); }
void WaitForBatches(const Call& call) { CompleteCopies(call.In<uint32_t>(0)); }
void WaitForCopies(const Call& /*call*/) { CompleteAllCopies(); }

// ---- Barriers

void Sync(const Call& call) {
  WaitAtBarrier(call.site, call.In<int>(0), call.In<int>(1), /*vote=*/false);
}

// An mbarrier, in place of its 64 bits.
struct Barrier {
  uint16_t threads;
  uint16_t missing;
  uint32_t phase;
};
Barrier& BarrierAt(const Call& call, size_t i) { return *static_cast<Barrier*>(call.Shared(i)); }

void MakeBarrier(const Call& call) {
  const auto threads = call.In<uint16_t>(1);
  BarrierAt(call, 0) = {.threads = threads, .missing = threads, .phase = 0};
}
void Arrive(const Call& call) {
  Barrier& barrier = BarrierAt(call, 0);
  races::Before(&barrier);
  CountProgress();
  if (--barrier.missing > 0) return;
  barrier.missing = barrier.threads;
  ++barrier.phase;
}
void ArriveAfterCopies(const Call& call) {
  CompleteAllCopies();
  Arrive(call);
}
// Operands are the result, the address and the parity of the phase that is waited for.
void TestWait(const Call& call) {
  Barrier& barrier = BarrierAt(call, 1);
  const bool passed = barrier.phase % 2 != call.In<uint32_t>(2);
  call.Out<uint32_t>(0) = passed ? 1 : 0;
  if (passed) {
    races::After(&barrier);
    CountProgress();
  } else {
    Pause(call.site);
  }
}

// ---- Loads and stores

template <class T>
void LoadIfActive(const Call& call) {
  call.Out<T>(0) = call.In<uint32_t>(2) != 0 ? *call.In<const T*>(1) : T{0};
}
void StoreFour(const Call& call) {
  auto* to = static_cast<uint32_t*>(call.Shared(0));
  for (size_t i = 0; i < 4; ++i) to[i] = call.In<uint32_t>(1 + i);
}

}  // namespace

struct Instruction {
  std::string_view name;  // part of the text of the asm statement
  void (*run)(const Call&);
};

namespace {

// The first that fits.
constexpr Instruction kInstructions[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", &ByAllLanes<&Multiply<&FromF16, 2>>},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", &ByAllLanes<&Multiply<&FromBf16, 2>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", &ByAllLanes<&Multiply<&FromTf32, 1>>},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", &ByAllLanes<&LoadMatrices>},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", &ByAllLanes<&LoadTransposed>},
    {"cp.async.cg.shared.global [%0], [%1], 16, %2", &CopyAsync<16>},
    {"cp.async.ca.shared.global [%0], [%1], 4, %2", &CopyAsync<4>},
    {"cp.async.commit_group", &EndBatch},
    {"cp.async.wait_group %0", &WaitForBatches},
    {"cp.async.wait_all", &WaitForCopies},
    {"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0]", &ArriveAfterCopies},
    {"bar.sync %0, %1", &Sync},
    {"mbarrier.init.shared::cta.b64 [%0], %1", &MakeBarrier},
    {"mbarrier.arrive.shared::cta.b64 ignored, [%0]", &Arrive},
    {"mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2", &TestWait},
    {"@is_active ld.global.nc.b32 %0, [%1]", &LoadIfActive<uint32_t>},
    {"@is_active ld.global.nc.b16 %0, [%1]", &LoadIfActive<uint16_t>},
    {"st.shared.v4.b32 [%0], {%1, %2, %3, %4}", &StoreFour},
};

}  // namespace

const Instruction& FindInstruction(std::string_view text) {
  for (const Instruction& instruction : kInstructions) {
    if (text.find(instruction.name) != std::string_view::npos) return instruction;
  }
  Fail(("no such PTX (ptx.cc): " + std::string(text)).c_str());
}

void RunInstruction(const Instruction& instruction, std::initializer_list<Operand> operands,
                    const std::source_location& where) {
  const Site site{instruction.name.data(), where};
  instruction.run({site, operands.begin()});
}

}  // namespace gpu_emulator
