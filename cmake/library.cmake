# The library: everything in src/. Sources include each other as "thimble/<folder>/<file>.h", the path
# that users see after installation; a link in the build folder maps it to src/.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/include/thimble SYMBOLIC)

file(GLOB_RECURSE THIMBLE_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cc)
# Counting malloc replaces malloc for a whole program: programs of ours link it, the library does not.
list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "malloc_interposer\\.cc$")
# With CUDA its device and the kernels beside those of the CPU; without, a file that says so.
if(THIMBLE_WITH_CUDA)
  list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "/device/without_cuda/")
else()
  list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "/device/cuda/|_cuda\\.cc$")
endif()

add_library(thimble STATIC ${THIMBLE_SOURCES})
add_library(thimble::thimble ALIAS thimble)
target_include_directories(thimble PUBLIC
  $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(thimble PUBLIC cxx_std_20)
# One source knows the version: a new one rebuilds nothing else.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/base/version.cc PROPERTIES
  COMPILE_DEFINITIONS THIMBLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(thimble
  PUBLIC fmt::fmt Threads::Threads
  PRIVATE $<BUILD_INTERFACE:thimble_options> hwy::hwy $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

# Compiled once instead of in every source; each header still includes what it needs (the target
# thimble_headers_alone proves it).
target_precompile_headers(thimble PRIVATE <fmt/format.h> <algorithm> <functional> <map> <memory>
  <optional> <set> <span> <string> <string_view> <utility> <variant> <vector>)

# Nobody waits for pages and tables: less optimisation there saves more than it costs.
file(GLOB_RECURSE THIMBLE_REPORT_SOURCES CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/src/report/*.cc)
set_source_files_properties(${THIMBLE_REPORT_SOURCES} PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)

# SIMD targets: SSE4 as the floor of every 64-bit PC since 2008, AVX2, AVX-512; NEON elsewhere. The
# others Highway knows (SSSE3, AVX3_DL) would only add compile time.
target_compile_definitions(thimble PRIVATE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
# A product may be contracted to a fused multiply-add only where the source says so (hn::MulAdd), or
# results would differ between the compiler's moods.
target_compile_options(thimble PRIVATE -ffp-contract=off)

# GPU code is made apart: it sees nothing of the libraries that the rest is built with.
if(THIMBLE_WITH_CUDA)
  file(GLOB_RECURSE THIMBLE_GPU_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cu)
  add_library(thimble_gpu_code OBJECT ${THIMBLE_GPU_SOURCES})
  target_include_directories(thimble_gpu_code PRIVATE ${CMAKE_BINARY_DIR}/include)
  # The same rule on the device: a product is fused with a sum only where the source says fmaf.
  target_compile_options(thimble_gpu_code PRIVATE --fmad=false --expt-relaxed-constexpr -lineinfo
    $<$<BOOL:${THIMBLE_WERROR}>:-Werror=all-warnings>)
  target_sources(thimble PRIVATE $<TARGET_OBJECTS:thimble_gpu_code>)
  target_compile_definitions(thimble PRIVATE THIMBLE_WITH_CUDA)
  target_include_directories(thimble SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  find_package(CUDAToolkit REQUIRED)
  target_link_libraries(thimble PUBLIC CUDA::cudart_static)
endif()
