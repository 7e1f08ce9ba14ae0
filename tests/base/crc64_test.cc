#include "thimble/base/crc64.h"

#include <gtest/gtest.h>

#include <string>

namespace thimble {
namespace {

uint64_t Of(std::string_view text) {
  Crc64 checksum;
  checksum.Append(text);
  return checksum.value();
}

// The value that every description of this checksum gives for these digits.
TEST(Crc64, IsTheOneOfXz) { EXPECT_EQ(Of("123456789"), 0x995DC9BBDF1939FAU); }

TEST(Crc64, OfNothingIsZero) { EXPECT_EQ(Of(""), 0U); }

TEST(Crc64, DoesNotDependOnThePieces) {
  const std::string text = "thirty-one bytes, and no fewer.";
  for (size_t first = 0; first <= text.size(); ++first) {
    Crc64 checksum;
    checksum.Append(std::string_view(text).substr(0, first));
    Crc64 continued(checksum.value());
    continued.Append(std::string_view(text).substr(first));
    EXPECT_EQ(continued.value(), Of(text)) << first;
  }
}

TEST(Crc64, SeesEveryBitAndEveryZero) {
  const std::string text(40, 'x');
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(Of(other), Of(text)) << bit;
  }
  EXPECT_NE(Of(std::string(1, '\0')), Of(std::string(2, '\0')));
}

}  // namespace
}  // namespace thimble
