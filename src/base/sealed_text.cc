#include "thimble/base/sealed_text.h"

#include <fmt/format.h>

#include "thimble/base/crc64.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/quote_name.h"

namespace thimble {
namespace {

constexpr std::string_view kMark = "crc64:";
constexpr std::string_view kTomlLine = "# checksum ";
constexpr size_t kDigits = 16;

// Where the digits of the text's seal begin; npos if it has none. The last seal counts, because it
// is written at the end.
size_t DigitsOfSeal(std::string_view text) {
  const size_t mark = text.rfind(kMark);
  if (mark == std::string_view::npos || text.size() - mark < kOpenSeal.size()) return text.npos;
  return mark + kMark.size();
}

// The checksum that the text's seal should contain.
uint64_t ChecksumOf(std::string_view text, size_t digits) {
  Crc64 checksum;
  checksum.Append(text.substr(0, digits));
  checksum.Append(kOpenSeal.substr(kMark.size()));
  checksum.Append(text.substr(digits + kDigits));
  return checksum.value();
}

std::string FillSeal(std::string text) {
  const size_t digits = DigitsOfSeal(text);
  text.replace(digits - kMark.size(), kOpenSeal.size(), FormatSeal(ChecksumOf(text, digits)));
  return text;
}

}  // namespace

std::string FormatSeal(uint64_t checksum) { return fmt::format("{}{:016x}", kMark, checksum); }

std::string SealToml(std::string_view text) {
  std::string sealed(WithoutSeal(text));
  if (!sealed.empty() && sealed.back() != '\n') sealed += '\n';
  return FillSeal(fmt::format("{}{}{}\n", sealed, kTomlLine, kOpenSeal));
}

std::string_view WithoutSeal(std::string_view toml) {
  const size_t line_bytes = kTomlLine.size() + kOpenSeal.size() + 1;
  if (toml.size() < line_bytes || toml.back() != '\n') return toml;
  const std::string_view last = toml.substr(toml.size() - line_bytes);
  const bool sealed =
      last.starts_with(kTomlLine) && last.substr(kTomlLine.size()).starts_with(kMark);
  return sealed ? toml.substr(0, toml.size() - line_bytes) : toml;
}

std::string SealJson(std::string_view text) {
  const size_t brace = text.find_last_not_of('\n');
  THIMBLE_CHECK(brace != text.npos && text[brace] == '}', "not the text of a JSON object");
  const std::string_view members = text.substr(0, text.find_last_not_of('\n', brace - 1) + 1);
  return FillSeal(fmt::format("{},\n \"checksum\": \"{}\"\n}}\n", members, kOpenSeal));
}

Result<void> CheckSeal(std::string_view text) {
  const size_t digits = DigitsOfSeal(text);
  if (digits == std::string_view::npos) return {};
  const std::string_view seal = text.substr(digits - kMark.size(), kOpenSeal.size());
  const std::string expected = FormatSeal(ChecksumOf(text, digits));
  if (seal == expected) return {};
  return BadInput(fmt::format("is damaged or was edited: its checksum is {}, it records {}",
                              expected, QuoteName(seal)));
}

Result<std::string> ReadSealedFile(const std::string& path, int64_t max_bytes) {
  THIMBLE_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, max_bytes));
  if (auto sealed = CheckSeal(text); !sealed.ok()) return WithContext(path, sealed.error());
  return text;
}

}  // namespace thimble
