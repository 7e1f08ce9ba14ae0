# CUDA, where its compiler is: THIMBLE_CUDA is AUTO (if found), ON (required) or OFF. Nothing of it is
# needed for the rest. The CUDA runtime is linked statically, so that programs start on machines
# without it and say what is missing.
set(THIMBLE_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON or OFF")
set(THIMBLE_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING
  "What GPU code is made for: A100, H100 and H200, and what comes after them")

set(THIMBLE_WITH_CUDA OFF)
if(THIMBLE_CUDA)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(THIMBLE_WITH_CUDA ON)
  elseif(NOT THIMBLE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "THIMBLE_CUDA is ${THIMBLE_CUDA}, but there is no CUDA compiler (nvcc)")
  endif()
endif()

if(THIMBLE_WITH_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${THIMBLE_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 12 and later have C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
