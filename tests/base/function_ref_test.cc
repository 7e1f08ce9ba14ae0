#include "thimble/base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>

namespace thimble {
namespace {

int CallTwice(FunctionRef<int(int)> function) { return function(1) + function(2); }

int Triple(int number) { return 3 * number; }

TEST(FunctionRef, CallsLambdas) {
  int calls = 0;
  EXPECT_EQ(CallTwice([&](int number) { return ++calls, number * 10; }), 30);
  EXPECT_EQ(calls, 2);
}

TEST(FunctionRef, CallsConstLambdas) {
  const auto square = [](int number) { return number * number; };
  EXPECT_EQ(CallTwice(square), 5);
}

TEST(FunctionRef, CallsFunctionPointers) {
  int (*pointer)(int) = &Triple;
  EXPECT_EQ(CallTwice(pointer), 9);
}

TEST(FunctionRef, RefersAndDoesNotCopy) {
  const auto counter = [count = 0](int step) mutable { return count += step; };
  auto mine = counter;
  EXPECT_EQ(CallTwice(mine), 1 + 3);
  EXPECT_EQ(mine(0), 3);
}

TEST(FunctionRef, CopiesReferToTheSameCallable) {
  int calls = 0;
  auto count = [&](int) { return ++calls; };
  const FunctionRef<int(int)> first(count);
  const FunctionRef<int(int)> second = first;
  first(0);
  second(0);
  EXPECT_EQ(calls, 2);
}

TEST(FunctionRef, PassesArgumentsThatOnlyMove) {
  auto take = [](std::unique_ptr<int> pointer) { return *pointer; };
  const FunctionRef<int(std::unique_ptr<int>)> reference(take);
  EXPECT_EQ(reference(std::make_unique<int>(4)), 4);
}

}  // namespace
}  // namespace thimble
