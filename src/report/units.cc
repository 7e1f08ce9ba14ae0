#include "thimble/report/units.h"

#include <fmt/format.h>

#include <cmath>

#include "thimble/base/byte_size.h"

namespace thimble {

std::string BytesText(size_t bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

std::string CountText(int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const size_t first = count < 0 ? 1 : 0;
  std::string text;
  for (size_t place = 0; place < digits.size(); ++place) {
    const size_t left = digits.size() - place;
    if (place > first && left % 3 == 0) text += ',';
    text += digits[place];
  }
  return text;
}

std::string ShareText(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

std::string FlopsText(int64_t flops) {
  const double value = static_cast<double>(flops);
  if (std::abs(value) < 1e6) return fmt::format("{:.2f} kFLOP", value / 1e3);
  if (std::abs(value) < 1e9) return fmt::format("{:.2f} MFLOP", value / 1e6);
  if (std::abs(value) < 1e12) return fmt::format("{:.2f} GFLOP", value / 1e9);
  if (std::abs(value) < 1e15) return fmt::format("{:.2f} TFLOP", value / 1e12);
  return fmt::format("{:.2f} PFLOP", value / 1e15);
}

std::string RatioText(double larger, double smaller) {
  return smaller > 0 ? fmt::format("{:.2f}x", larger / smaller) : "";
}

}  // namespace thimble
