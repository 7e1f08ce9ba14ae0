#include "thimble/base/version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace thimble {
namespace {

TEST(Version, IsThreeNumbers) {
  const std::string version(Version());
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
  EXPECT_EQ(version.find_first_not_of("0123456789."), std::string::npos) << version;
  EXPECT_EQ(version.find(".."), std::string::npos) << version;
}

}  // namespace
}  // namespace thimble
