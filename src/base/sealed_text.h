// Sealed texts: files that carry their own checksum, so that a damaged file is detected. The seal
// is "crc64:" and 16 hexadecimal digits somewhere in the text; the checksum is that of the whole
// text with zeros in place of the digits. The seal is a comment in TOML and a member "checksum" in
// JSON, so other programs can still read these files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

// "crc64:0123456789abcdef".
std::string FormatSeal(uint64_t checksum);
// A seal before its digits are filled in.
inline constexpr std::string_view kOpenSeal = "crc64:0000000000000000";

// The text with a last line "# checksum crc64:…"; an existing one is replaced.
std::string SealToml(std::string_view text);
// The text without that line.
std::string_view WithoutSeal(std::string_view toml);
// The text of a JSON object with a last member "checksum". Requires an object with at least one
// member.
std::string SealJson(std::string_view text);

// kBadInput if the text has a seal that does not match. A text without a seal is accepted: it is
// older than seals, or another program wrote it.
Result<void> CheckSeal(std::string_view text);

// ReadWholeFile and CheckSeal; errors name the file.
Result<std::string> ReadSealedFile(const std::string& path, int64_t max_bytes);

}  // namespace thimble
