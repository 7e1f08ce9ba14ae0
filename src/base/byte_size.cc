#include "thimble/base/byte_size.h"

#include <array>
#include <cmath>

namespace thimble {
namespace {

__extension__ using Wide = unsigned __int128;

// Further digits of the fraction amount to less than one byte, even in TiB.
constexpr size_t kMaxFractionDigits = 18;
// 8 PiB: more than any machine has, and sums of a few such sizes still fit into 63 bits.
constexpr int64_t kMaxBytes = int64_t{1} << 53;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Removes the leading digits from `text` and returns them.
std::string_view TakeDigits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// Bytes of a unit in upper or lower case: "", b, k, kb, ki, kib, …; 0 if unknown.
int64_t UnitBytes(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgt";
  std::string lower(unit);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower.empty() || lower == "b") return 1;
  const size_t power = kPrefixes.find(lower[0]);
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = std::string_view(lower).substr(1);
  const bool binary = rest == "i" || rest == "ib";
  if (!binary && !rest.empty() && rest != "b") return 0;
  int64_t bytes = 1;
  for (size_t i = 0; i <= power; ++i) bytes *= binary ? 1024 : 1000;
  return bytes;
}

// whole.fraction times unit, rounded down; nullopt above kMaxBytes. Exact: with doubles, 1.005MB
// would be one byte too small.
std::optional<int64_t> Bytes(std::string_view whole, std::string_view fraction, int64_t unit) {
  const auto unit_bytes = static_cast<Wide>(unit);
  Wide bytes = 0;
  for (const char digit : whole) {
    bytes = bytes * 10 + static_cast<Wide>(digit - '0');
    if (bytes > static_cast<Wide>(kMaxBytes)) return std::nullopt;
  }
  Wide numerator = 0;
  Wide denominator = 1;
  for (const char digit : fraction.substr(0, kMaxFractionDigits)) {
    numerator = numerator * 10 + static_cast<Wide>(digit - '0');
    denominator *= 10;
  }
  bytes = bytes * unit_bytes + numerator * unit_bytes / denominator;
  if (bytes > static_cast<Wide>(kMaxBytes)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

}  // namespace

std::optional<int64_t> CheckedMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

Result<int64_t> ParseByteSize(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return BadInput(fmt::format(
        "'{}' is {}; expected a whole number of bytes, or a number with a unit: k, M, G "
        "or T (thousands), Ki, Mi, Gi or Ti (1024s), with or without B; for example "
        "512k, 8MB or 1.5GiB",
        text, why));
  };
  std::string_view rest = text;
  const std::string_view whole = TakeDigits(rest);
  const bool has_fraction = rest.starts_with('.');
  if (has_fraction) rest.remove_prefix(1);
  const std::string_view fraction = has_fraction ? TakeDigits(rest) : std::string_view();
  if (whole.empty() || has_fraction == fraction.empty()) return wrong("not a size");
  if (rest.starts_with(' ') && rest.size() > 1) rest.remove_prefix(1);
  const int64_t unit = UnitBytes(rest);
  if (unit == 0) return wrong("not a size");
  if (unit == 1 && has_fraction) return wrong("not a whole number of bytes");
  const std::optional<int64_t> bytes = Bytes(whole, fraction, unit);
  if (!bytes) return BadInput(fmt::format("'{}' is too large; expected at most 8192TiB", text));
  // 0 means "no limit" to some options, so a tiny size must not be rounded down to 0.
  const bool nothing = text.find_first_of("123456789") == std::string_view::npos;
  if (*bytes == 0 && !nothing) return wrong("less than a byte");
  return *bytes;
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.995 and above would print as 1000.00.
  for (; std::abs(value) >= (unit == 0 ? 1000 : 999.995); ++unit) value /= 1e3;
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, unit < 3 ? 2 : 3, kUnits[unit]);
}

}  // namespace thimble
