// For tests that need a GPU. Their suites are called Cuda…: ctest has a label for them.
#pragma once

#include <gtest/gtest.h>

#include "thimble/device/device.h"

// In a test or SetUp: skips the test if there is no GPU.
#define THIMBLE_CUDA_OR_SKIP()                                                              \
  if (const auto check = ::thimble::CheckDevice(::thimble::DeviceKind::kCuda); !check.ok()) \
  GTEST_SKIP() << check.error().message
