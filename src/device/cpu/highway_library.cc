// The functions of Highway that normally live in its library: which targets this processor
// supports, and which one is in use. Debian has only the shared library, and our programs are to
// run without it (docs/decisions/0017-one-file-that-runs-anywhere.md).
#include <hwy/highway.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {
namespace {

int64_t DetectTargets() {
  // The compiler's baseline is always supported.
  int64_t targets = HWY_ENABLED_BASELINE;
#if HWY_ARCH_X86_64
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("pclmul");
  // Every processor with these also has F16C and LZCNT, which Highway uses.
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  if (sse4) targets |= HWY_SSSE3 | HWY_SSE4;
  if (avx2) targets |= HWY_AVX2;
  if (avx512) targets |= HWY_AVX3;
#endif
  return targets;
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t targets = DetectTargets();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

// Where the emulation of vectors finds itself misused.
void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy
