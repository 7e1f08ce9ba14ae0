# CUDA: THIMBLE_CUDA is AUTO (used if its compiler is found), ON (required) or OFF. The rest of the
# project does not need it. The CUDA runtime is linked statically, so that programs also start on
# machines without it and report what is missing. EMULATED: GPU code runs on the CPU, for tests on
# machines without a GPU (tests/support/gpu_emulator).
set(THIMBLE_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON, OFF or EMULATED")
# 90a is the H100 and H200 with instructions that later GPUs do not have.
set(THIMBLE_CUDA_ARCHITECTURES "80-real;90a-real;90-virtual" CACHE STRING
  "GPU architectures to compile for: A100, H100 and H200, and later ones")
option(THIMBLE_GPU_CODE_ONLY_COMPILED
  "Compile GPU code in the shortest time, to prove that it compiles; it runs slowly" OFF)

set(THIMBLE_WITH_CUDA OFF)
set(THIMBLE_CUDA_EMULATED OFF)
if(THIMBLE_CUDA STREQUAL "EMULATED")
  set(THIMBLE_WITH_CUDA ON)
  set(THIMBLE_CUDA_EMULATED ON)
elseif(THIMBLE_CUDA)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(THIMBLE_WITH_CUDA ON)
  elseif(NOT THIMBLE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "THIMBLE_CUDA is ${THIMBLE_CUDA}, but no CUDA compiler (nvcc) was found")
  endif()
endif()

if(THIMBLE_WITH_CUDA AND NOT THIMBLE_CUDA_EMULATED)
  set(CMAKE_CUDA_ARCHITECTURES ${THIMBLE_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  # CMake detects the GPU that is there, but not its "a".
  if(THIMBLE_CUDA_ARCHITECTURES STREQUAL "native" AND CMAKE_CUDA_ARCHITECTURES_NATIVE MATCHES "^90")
    set(CMAKE_CUDA_ARCHITECTURES 90a-real)
  endif()
  # CMake 3.25 does not recognize that nvcc 12 and later support C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  # The host part too, here because nvcc warns about a second -O.
  if(THIMBLE_GPU_CODE_ONLY_COMPILED)
    set(CMAKE_CUDA_FLAGS_RELEASE "-O0 -DNDEBUG")
  endif()
endif()
