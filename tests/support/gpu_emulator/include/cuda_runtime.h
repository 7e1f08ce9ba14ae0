// In place of the toolkit's header in code for the GPU emulator: its types and functions of the
// host, and what nvcc adds to C++.
#pragma once

#include_next <cuda_runtime.h>

#include "tests/support/gpu_emulator/atomics.h"
#include "tests/support/gpu_emulator/collectives.h"
#include "tests/support/gpu_emulator/intrinsics.h"
#include "tests/support/gpu_emulator/launch.h"
#include "tests/support/gpu_emulator/ptx.h"
