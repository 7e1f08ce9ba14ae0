// Times every kernel of a training step alone, with the shapes of a model; bench/README.md.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "bench/kernel_cases.h"
#include "bench/kernel_memory.h"
#include "bench/machine_peaks.h"
#include "bench/train_flags.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

constexpr std::string_view kHelp =
    R"(thimble_kernel_bench [options of `thimble train`] [--benchmark_...]
Times the CPU kernels of a training step, each distinct call alone.
  --model M --batch B --threads T (2) --scratch BYTES --simd TARGET ...   options of the plan
  --benchmark_filter=REGEX, --benchmark_min_time=S, --benchmark_format=json, ...   Google Benchmark
)";

// Options of `thimble train` in `config`, those of Google Benchmark in `rest`.
struct KernelBenchArguments {
  TrainConfig config = BenchDefaults();
  std::vector<std::string> rest;
  bool help = false;
};

Result<KernelBenchArguments> ParseArguments(const std::vector<std::string>& arguments) {
  KernelBenchArguments parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help") {
      parsed.help = true;
    } else if (arguments[i].starts_with("--benchmark_") || arguments[i].starts_with("--v=")) {
      parsed.rest.push_back(arguments[i]);
    } else {
      THIMBLE_TRY(ReadTrainFlag(arguments, &i, parsed.config));
    }
  }
  return parsed;
}

// Data shared by the benchmarks; outlives them.
struct Bench {
  KernelLimits limits;
  std::vector<KernelCase> cases;
  MachinePeaks peaks;
  ThreadPool pool;
};

// Runs `work` for as long as Google Benchmark asks; returns seconds per run. Rates are computed
// here, because Google Benchmark would print fractions of a peak as "per second".
double SecondsPerRun(benchmark::State& state, FunctionRef<void()> work) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count() / static_cast<double>(state.iterations());
}

void RunCase(benchmark::State& state, const KernelCase& the_case, Bench& bench) {
  const auto memory = KernelMemory::Create(the_case, bench.limits);
  if (!memory.ok()) return state.SkipWithError(memory.error().message.c_str());
  memory->Run(the_case, bench.pool);  // touches the pages
  const double seconds = SecondsPerRun(state, [&] { memory->Run(the_case, bench.pool); });
  const double flops_per_second = static_cast<double>(the_case.cost.flops) / seconds;
  const double bytes_per_second = static_cast<double>(the_case.cost.bytes) / seconds;
  state.counters["GFLOP/s"] = flops_per_second / 1e9;
  state.counters["GB/s"] = bytes_per_second / 1e9;
  state.counters["of_fma_peak"] = flops_per_second / bench.peaks.flops_per_second;
  state.counters["of_copy"] = bytes_per_second / bench.peaks.copied_bytes_per_second;
  state.counters["per_step"] = static_cast<double>(the_case.calls_per_step);
}

void RunFma(benchmark::State& state, Bench& bench) {
  double flops = 0;
  const double seconds =
      SecondsPerRun(state, [&] { flops = RunFmaChains(bench.pool, kFmaRounds); });
  state.counters["GFLOP/s"] = flops / seconds / 1e9;
  state.counters["of_fma_peak"] = flops / seconds / bench.peaks.flops_per_second;
}

void RunCopy(benchmark::State& state, Bench& bench) {
  auto arrays = CopyArrays::Create(bench.pool);
  if (!arrays.ok()) return state.SkipWithError(arrays.error().message.c_str());
  double bytes = 0;
  const double seconds = SecondsPerRun(state, [&] { bytes = arrays->Copy(bench.pool); });
  state.counters["GB/s"] = bytes / seconds / 1e9;
  state.counters["of_copy"] = bytes / seconds / bench.peaks.copied_bytes_per_second;
}

template <class Function>
void Register(const std::string& name, Function function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void RegisterAll(Bench& bench) {
  Register("machine/fma", [&bench](benchmark::State& state) { RunFma(state, bench); });
  Register("machine/copy", [&bench](benchmark::State& state) { RunCopy(state, bench); });
  for (const KernelCase& the_case : bench.cases) {
    Register(the_case.name, [&](benchmark::State& state) { RunCase(state, the_case, bench); });
  }
}

void AddContext(const TrainConfig& config, const Bench& bench) {
  benchmark::AddCustomContext("model", config.model);
  benchmark::AddCustomContext("batch", fmt::format("{}", config.batch));
  benchmark::AddCustomContext("threads", fmt::format("{}", bench.pool.num_threads()));
  benchmark::AddCustomContext("scratch bytes per thread",
                              fmt::format("{}", bench.limits.scratch_bytes_per_thread));
  benchmark::AddCustomContext("simd", ActiveSimdTarget());
  benchmark::AddCustomContext("FMA peak",
                              fmt::format("{:.1f} GFLOP/s", bench.peaks.flops_per_second / 1e9));
  benchmark::AddCustomContext(
      "copy", fmt::format("{:.1f} GB/s", bench.peaks.copied_bytes_per_second / 1e9));
}

// False if Google Benchmark rejects a flag, which it reports itself.
bool InitializeGoogleBenchmark(const std::vector<std::string>& arguments) {
  static std::vector<std::string> flags;  // Google Benchmark keeps pointers to them
  flags = arguments;
  flags.insert(flags.begin(), "thimble_kernel_bench");
  std::vector<char*> words;
  for (std::string& flag : flags) words.push_back(flag.data());
  int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  benchmark::Initialize(&count, words.data());
  return !benchmark::ReportUnrecognizedArguments(count, words.data());
}

Result<void> RunBench(const KernelBenchArguments& arguments) {
  if (DeviceOf(arguments.config) != DeviceKind::kCpu) {
    return BadInput(
        fmt::format("--device {}: single kernels are timed only on the CPU; "
                    "use thimble_step_bench --ops for a GPU",
                    arguments.config.device));
  }
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program, PlanForBench(arguments.config));
  if (!InitializeGoogleBenchmark(arguments.rest)) return BadInput("wrong use; see --help");
  const Plan& plan = program.main_plan();
  Bench bench{
      plan.limits, DistinctKernelCases(plan, BuiltinOps()), {}, ThreadPool(plan.limits.threads)};
  THIMBLE_ASSIGN_OR_RETURN(bench.peaks, MeasureMachinePeaks(bench.pool));
  AddContext(arguments.config, bench);
  RegisterAll(bench);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return {};
}

int Main(const std::vector<std::string>& words) {
  const auto arguments = ParseArguments(words);
  if (arguments.ok() && arguments->help) {
    std::cout << kHelp;
    return 0;
  }
  const Result<void> done = arguments.ok() ? RunBench(*arguments) : Result<void>(arguments.error());
  if (done.ok()) return 0;
  std::cerr << "thimble_kernel_bench: " << done.error().message << "\n";
  return ExitCode(done.error());
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  return thimble::Main(std::vector<std::string>(argv + 1, argv + argc));
}
