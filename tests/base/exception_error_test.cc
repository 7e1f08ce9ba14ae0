#include "thimble/base/exception_error.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>
#include <vector>

namespace thimble {
namespace {

template <class Throw>
std::string MessageOf(Throw throwing) {
  try {
    throwing();
  } catch (const std::exception& exception) {
    const Error error = ErrorOf(exception);
    EXPECT_EQ(error.kind, ErrorKind::kFailed);
    return error.message;
  }
  return "nothing was thrown";
}

TEST(ExceptionError, PlainWordsForWhatTheMachineRefuses) {
  EXPECT_EQ(MessageOf([] { std::vector<int>().reserve(SIZE_MAX / 4); }).find("a size is larger"),
            0U);
  EXPECT_EQ(MessageOf([] {
              throw std::system_error(std::make_error_code(std::errc::too_many_files_open));
            }),
            "the operating system refused: Too many open files");
}

TEST(ExceptionError, AnythingElseIsADefect) {
  EXPECT_EQ(MessageOf([] { throw std::runtime_error("odd"); }),
            "unexpected error: odd; this is a defect in Thimble, please report it");
}

}  // namespace
}  // namespace thimble
