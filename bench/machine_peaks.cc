#include "bench/machine_peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "bench/cuda/gpu_peaks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine_peaks.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide a latency of 4 cycles on up to three units, and with the two constants fit the
// 16 registers of AVX2. Variables instead of an array, so that no compiler keeps them in memory.
// Writes one vector to `sum`, so that the chains are not optimized away; returns operations per
// round.
size_t FmaChains(int64_t rounds, float* sum) {
  const hn::ScalableTag<float> tag;
  const auto factor = hn::Set(tag, 0.75F);  // numbers converge to 1: neither huge nor denormal
  const auto term = hn::Set(tag, 0.25F);
  auto a = hn::Set(tag, 0.1F), b = hn::Set(tag, 0.2F), c = hn::Set(tag, 0.3F);
  auto d = hn::Set(tag, 0.4F), e = hn::Set(tag, 0.5F), f = hn::Set(tag, 0.6F);
  auto g = hn::Set(tag, 0.7F), h = hn::Set(tag, 0.8F), i = hn::Set(tag, 0.9F);
  auto j = hn::Set(tag, 1.1F), k = hn::Set(tag, 1.2F), l = hn::Set(tag, 1.3F);
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    d = hn::MulAdd(d, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
    l = hn::MulAdd(l, factor, term);
  }
  const auto first = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(e, f));
  const auto second = hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(k, l));
  hn::StoreU(hn::Add(first, second), tag, sum);
  constexpr size_t kChains = 12;
  return kChains * 2 * hn::Lanes(tag);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
namespace {

HWY_EXPORT(FmaChains);

// Size of each of the two arrays: several times the cache of one group of cores today.
constexpr size_t kArrayBytes = size_t{128} << 20;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The highest rate of work() over many calls: enough that at least one runs without interference
// from other processes.
double BestRate(FunctionRef<double()> work) {
  constexpr double kSeconds = 0.4;
  constexpr int kMinRuns = 3;
  const auto start = std::chrono::steady_clock::now();
  double best = 0;
  for (int run = 0; run < kMinRuns || SecondsSince(start) < kSeconds; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const double amount = work();
    best = std::max(best, amount / SecondsSince(begin));
  }
  return best;
}

}  // namespace

// Only convolutions use tensor cores: linear layers and everything else compute in fp32.
double MachinePeaks::LimitSeconds(std::string_view op, const NodeCost& cost) const {
  const bool on_tensor_cores = tf32_flops_per_second > 0 && op.starts_with("conv2d");
  const double peak = on_tensor_cores ? tf32_flops_per_second : flops_per_second;
  return std::max(static_cast<double>(cost.flops) / peak,
                  static_cast<double>(cost.bytes) / copied_bytes_per_second);
}

double RunFmaChains(ThreadPool& pool, int64_t rounds) {
  constexpr size_t kMaxLanes = 1024;  // no target has more
  const size_t num_threads = static_cast<size_t>(pool.num_threads());
  std::vector<float> sums(num_threads * kMaxLanes);
  std::vector<size_t> flops_per_round(num_threads);
  pool.Run(num_threads, [&](size_t chunk, size_t /*thread*/) {
    flops_per_round[chunk] = HWY_DYNAMIC_DISPATCH(FmaChains)(rounds, &sums[chunk * kMaxLanes]);
  });
  THIMBLE_CHECK(sums[0] > 0, "expected a positive sum of the chains, got {}", sums[0]);
  return static_cast<double>(num_threads * flops_per_round[0]) * static_cast<double>(rounds);
}

Result<CopyArrays> CopyArrays::Create(ThreadPool& pool) {
  THIMBLE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(2 * kArrayBytes));
  std::memset(arena.bytes().data(), 1, arena.bytes().size());  // touches the pages
  CopyArrays arrays(std::move(arena));
  arrays.Copy(pool);
  return arrays;
}

double CopyArrays::Copy(ThreadPool& pool) {
  const size_t num_threads = static_cast<size_t>(pool.num_threads());
  std::byte* from = arena_.bytes().data();
  std::byte* to = from + kArrayBytes;
  pool.Run(num_threads, [&](size_t part, size_t /*thread*/) {
    const size_t begin = kArrayBytes / num_threads * part;
    const size_t end = part + 1 == num_threads ? kArrayBytes : begin + kArrayBytes / num_threads;
    std::memcpy(to + begin, from + begin, end - begin);
  });
  return 2.0 * static_cast<double>(kArrayBytes);
}

Result<MachinePeaks> MeasureMachinePeaks(ThreadPool& pool) {
  THIMBLE_ASSIGN_OR_RETURN(CopyArrays arrays, CopyArrays::Create(pool));
  return MachinePeaks{.flops_per_second = BestRate([&] { return RunFmaChains(pool, kFmaRounds); }),
                      .copied_bytes_per_second = BestRate([&] { return arrays.Copy(pool); })};
}

MachinePeaks MeasureMachinePeaksOfGpu(bool tf32) {
  const GpuPeaks gpu = MeasureGpuPeaks();
  return {.flops_per_second = gpu.fp32_flops_per_second,
          .copied_bytes_per_second = gpu.copied_bytes_per_second,
          .tf32_flops_per_second = tf32 ? gpu.tf32_flops_per_second : 0};
}

}  // namespace thimble
#endif  // HWY_ONCE
