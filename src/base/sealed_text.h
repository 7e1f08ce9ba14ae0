// Sealed texts: files that carry their own checksum, so that a damaged one is refused instead of
// believed. The seal is "crc64:" and 16 hexadecimal digits somewhere in the text; the checksum is
// that of the whole text with zeros in place of the digits. It stands in a comment of TOML and in a
// member "checksum" of JSON, so that every other program reads these files as before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

// "crc64:0123456789abcdef".
std::string FormatSeal(uint64_t checksum);
// A seal whose digits are still to be filled in.
inline constexpr std::string_view kOpenSeal = "crc64:0000000000000000";

// The text with a last line "# checksum crc64:…"; one that it has already is replaced.
std::string SealToml(std::string_view text);
// The text without that line.
std::string_view WithoutSeal(std::string_view toml);
// The text of a JSON object with a last member "checksum". Requires an object that has members.
std::string SealJson(std::string_view text);

// kBadInput where the text has a seal that is not its own. A text without one is accepted: it is
// older than seals, or somebody else's.
Result<void> CheckSeal(std::string_view text);

// ReadWholeFile and CheckSeal; errors name the file.
Result<std::string> ReadSealedFile(const std::string& path, int64_t max_bytes);

}  // namespace thimble
