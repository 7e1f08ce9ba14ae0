#include "tests/support/property_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "thimble/base/check.h"

// Called before a sanitizer ends the process; null in builds without one.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace thimble {
namespace {

std::optional<uint64_t> NumberFrom(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  THIMBLE_CHECK(error == std::errc() && rest == end, "{}={} is not a number", name, text);
  return number;
}

// Printed if the process crashes within a case.
std::array<char, 256> last_words;

void SayLastWords() {
  const size_t size = std::strlen(last_words.data());
  if (write(STDERR_FILENO, last_words.data(), size) < 0) return;  // nothing more can be done
  last_words[0] = '\0';
}

constexpr int kDeadlySignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction former_actions[std::size(kDeadlySignals)];

// Prints the case, then restores the previous handlers, which get the signal again.
void OnDeadlySignal(int /*signal*/) {
  SayLastWords();
  for (size_t i = 0; i < std::size(kDeadlySignals); ++i) {
    sigaction(kDeadlySignals[i], &former_actions[i], nullptr);
  }
}

void InstallLastWords() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_handler = &OnDeadlySignal;
    for (size_t i = 0; i < std::size(kDeadlySignals); ++i) {
      sigaction(kDeadlySignals[i], &action, &former_actions[i]);
    }
    if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&SayLastWords);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace

PropertyRun PropertyRun::FromEnvironment(uint32_t cases) {
  PropertyRun run;
  run.seed = NumberFrom("THIMBLE_PROPERTY_SEED").value_or(run.seed);
  run.cases = static_cast<uint32_t>(NumberFrom("THIMBLE_PROPERTY_CASES").value_or(cases));
  const auto only = NumberFrom("THIMBLE_PROPERTY_CASE");
  run.alone = only.has_value();
  run.first = static_cast<uint32_t>(only.value_or(0));
  return run;
}

void PropertyRun::ForEachCase(const std::string& op, uint32_t weight,
                              FunctionRef<void(uint32_t)> body) const {
  InstallLastWords();
  const uint32_t end = alone ? first + 1 : cases * weight;
  for (uint32_t number = first; number < end; ++number) {
    const std::string where =
        fmt::format("case {} of {}; alone: THIMBLE_PROPERTY_SEED={} THIMBLE_PROPERTY_CASE={}",
                    number, op, seed, number);
    fmt::format_to_n(last_words.data(), last_words.size() - 1, "died in {}\n{}", where, '\0');
    SCOPED_TRACE(where);
    body(number);
    last_words[0] = '\0';
  }
}

}  // namespace thimble
