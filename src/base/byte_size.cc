#include "thimble/base/byte_size.h"

#include <array>
#include <charconv>
#include <cmath>

namespace thimble {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kUnits = {
    Unit{"", 1},        Unit{"B", 1},        Unit{"k", 1e3},     Unit{"kB", 1e3},
    Unit{"K", 1e3},     Unit{"KB", 1e3},     Unit{"M", 1e6},     Unit{"MB", 1e6},
    Unit{"G", 1e9},     Unit{"GB", 1e9},     Unit{"Ki", 1024.0}, Unit{"KiB", 1024.0},
    Unit{"Mi", 0x1p20}, Unit{"MiB", 0x1p20}, Unit{"Gi", 0x1p30}, Unit{"GiB", 0x1p30},
};

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
  const auto wrong = [&] {
    return BadInput(
        fmt::format("'{}' is not a size; expected a number with a unit such as 512k, "
                    "8MB or 1.5GiB",
                    text));
  };
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || number < 0) return wrong();
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : kUnits) {
    if (known.name != unit) continue;
    const double bytes = number * known.factor;
    // 2^53: beyond it a double no longer counts single bytes.
    if (!(bytes <= 0x1p53) || std::floor(bytes) != bytes) return wrong();
    return static_cast<int64_t>(bytes);
  }
  return wrong();
}

std::string FormatBytes(int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (std::abs(value) < 1e3) return fmt::format("{} B", bytes);
  if (std::abs(value) < 1e6) return fmt::format("{:.2f} kB", value / 1e3);
  if (std::abs(value) < 1e9) return fmt::format("{:.2f} MB", value / 1e6);
  return fmt::format("{:.3f} GB", value / 1e9);
}

}  // namespace thimble
