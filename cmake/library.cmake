# The library: everything in src/. Sources include each other as "thimble/<folder>/<file>.h", the path
# that users see after installation; a link in the build folder maps it to src/.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/include/thimble SYMBOLIC)

file(GLOB_RECURSE THIMBLE_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cc)
# The malloc counter replaces malloc for the whole program: our programs link it, the library not.
list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "malloc_interposer\\.cc$")
# With CUDA, the folders named cuda/ (GPU code has its own list below); without, a stub.
if(THIMBLE_WITH_CUDA)
  list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "/device/without_cuda/")
else()
  list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "/src/(device|ops/[^/]+)/cuda/[^/]+$")
endif()

# Compile settings for all of it.
add_library(thimble_settings INTERFACE)
target_link_libraries(thimble_settings INTERFACE thimble_options nlohmann_json::nlohmann_json)
target_include_directories(thimble_settings INTERFACE ${CMAKE_BINARY_DIR}/include)
target_include_directories(thimble_settings SYSTEM INTERFACE ${HIGHWAY_INCLUDE_DIR} ${FMT_INCLUDE_DIR}
  ${TOMLPLUSPLUS_INCLUDE_DIR})
# SIMD targets: SSE4, which every 64-bit PC since 2008 has, AVX2, AVX-512; NEON elsewhere. The
# other targets of Highway (SSSE3, AVX3_DL) would only add compile time.
target_compile_definitions(thimble_settings INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)" $<$<BOOL:${THIMBLE_WITH_CUDA}>:THIMBLE_WITH_CUDA>)
# A product may be contracted to a fused multiply-add only where the source says so (hn::MulAdd);
# otherwise results would depend on the compiler's choices.
target_compile_options(thimble_settings INTERFACE -ffp-contract=off)
# Complex numbers occur in gradient checks alone, where they are finite: products need not look for
# infinities, which takes longer than the product.
target_compile_options(thimble_settings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fcx-limited-range>)

# Compiled once instead of in every source; each header still includes what it needs (the target
# thimble_headers_alone checks it).
set(THIMBLE_COMMON_HEADERS <fmt/format.h> <algorithm> <functional> <map> <memory> <optional> <set>
  <span> <string> <string_view> <utility> <variant> <vector>)

# These are not performance-critical: less optimisation saves more compile time than it costs.
set(THIMBLE_LIGHT_SOURCES ${THIMBLE_SOURCES})
list(FILTER THIMBLE_LIGHT_SOURCES INCLUDE REGEX "/src/(grad|model|program|report|train)/")
list(REMOVE_ITEM THIMBLE_SOURCES ${THIMBLE_LIGHT_SOURCES})
add_library(thimble_light OBJECT ${THIMBLE_LIGHT_SOURCES})
target_link_libraries(thimble_light PRIVATE thimble_settings)
target_compile_options(thimble_light PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
target_precompile_headers(thimble_light PRIVATE ${THIMBLE_COMMON_HEADERS})

add_library(thimble STATIC ${THIMBLE_SOURCES} $<TARGET_OBJECTS:thimble_light>)
add_library(thimble::thimble ALIAS thimble)
target_include_directories(thimble PUBLIC
  $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(thimble PUBLIC cxx_std_20)
target_link_libraries(thimble PUBLIC Threads::Threads PRIVATE $<BUILD_INTERFACE:thimble_settings>)
target_precompile_headers(thimble PRIVATE ${THIMBLE_COMMON_HEADERS})

# Only one source depends on the version, so that a new version rebuilds nothing else.
set(gpu_code none)
if(THIMBLE_CUDA_EMULATED)
  set(gpu_code emulated)
elseif(THIMBLE_WITH_CUDA)
  set(gpu_code ${THIMBLE_CUDA_ARCHITECTURES})
  if(gpu_code STREQUAL "native")
    set(gpu_code ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  endif()
  list(TRANSFORM gpu_code REPLACE "([0-9]+[a-z]?)-virtual" "compute_\\1")
  list(TRANSFORM gpu_code REPLACE "^([0-9]+[a-z]?)(-real)?$" "sm_\\1")
  list(JOIN gpu_code ", " gpu_code)
endif()
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/base/version.cc PROPERTIES
  COMPILE_DEFINITIONS "THIMBLE_VERSION=\"${PROJECT_VERSION}\";THIMBLE_GPU_CODE=\"${gpu_code}\"")
# An object of its own: a program that links fmt itself does not need it, and two would clash.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/base/fmt_library.cc PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)

# A unity build takes half the time. SIMD code is excluded: Highway includes such a source once for
# each target, so the names of two would clash.
set_target_properties(thimble thimble_light PROPERTIES UNITY_BUILD ${THIMBLE_UNITY})
# Larger parts take less time in total, but also keep fewer cores busy.
set_target_properties(thimble PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
set_target_properties(thimble_light PROPERTIES UNITY_BUILD_BATCH_SIZE 24)
foreach(source ${THIMBLE_SOURCES})
  file(STRINGS ${source} simd_lines LIMIT_COUNT 1 REGEX "hwy/|HWY_")
  if(simd_lines)
    set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endforeach()

# GPU code is compiled separately: it uses none of the libraries of the rest.
# join_gpu_sources(NAME SOURCE...): moves these from THIMBLE_GPU_SOURCES into one source.
macro(join_gpu_sources name)
  list(REMOVE_ITEM THIMBLE_GPU_SOURCES ${ARGN})
  set(includes ${ARGN})
  list(TRANSFORM includes REPLACE "(.+)" "#include \"thimble/\\1\"\n")
  list(JOIN includes "" includes)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name} CONTENT "${includes}" @ONLY)
  list(APPEND gpu_units ${CMAKE_CURRENT_BINARY_DIR}/${name})
endmacro()

if(THIMBLE_CUDA_EMULATED)
  include(${PROJECT_SOURCE_DIR}/tests/support/gpu_emulator/emulator.cmake)
elseif(THIMBLE_WITH_CUDA)
  file(GLOB_RECURSE THIMBLE_GPU_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/src
    ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cu)
  # nvcc reads the headers of the library once for each source and architecture, which takes longer
  # than the code of most ops: all but the largest are compiled as one source, in which all
  # names must be unique.
  set(small_sources ${THIMBLE_GPU_SOURCES})
  list(FILTER small_sources EXCLUDE REGEX "^ops/conv2d/|/batch_norm_grad_cuda\\.cu$")
  set(gpu_units)
  join_gpu_sources(small_gpu_sources.cu ${small_sources})
  # Kernels of convolutions share their headers too. They are compiled side by side, which takes less
  # time on many cores, unless the processor's time is what counts.
  if(THIMBLE_GPU_CODE_ONLY_COMPILED)
    set(tap_sources ${THIMBLE_GPU_SOURCES})
    list(FILTER tap_sources INCLUDE REGEX "^ops/conv2d/cuda/tap_")
    join_gpu_sources(tap_gpu_sources.cu ${tap_sources})
    # Those left whose names differ.
    set(other_sources ${THIMBLE_GPU_SOURCES})
    list(FILTER other_sources EXCLUDE REGEX "/wide_|_short\\.cu$")
    join_gpu_sources(other_gpu_sources.cu ${other_sources})
  endif()
  list(TRANSFORM THIMBLE_GPU_SOURCES PREPEND src/)
  add_library(thimble_gpu_code OBJECT ${THIMBLE_GPU_SOURCES} ${gpu_units})
  target_include_directories(thimble_gpu_code PRIVATE ${CMAKE_BINARY_DIR}/include)
  # The same rules as for the rest: a product is fused with a sum only where the source says fmaf, on
  # host and device, and the host compiler gets the warnings of compile_options.cmake.
  target_compile_options(thimble_gpu_code PRIVATE --fmad=false -Xcompiler=-ffp-contract=off
    -Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion,-Wno-sign-conversion --expt-relaxed-constexpr
    $<$<BOOL:${THIMBLE_WERROR}>:-Werror=all-warnings>)
  if(NOT THIMBLE_GPU_CODE_ONLY_COMPILED)
    target_compile_options(thimble_gpu_code PRIVATE -lineinfo)
  elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    get_target_property(quick_sources thimble_gpu_code SOURCES)
    # To machine code, not those with wgmma: they take little time, and ptxas would remark on each
    # kernel.
    if(NOT THIMBLE_CUDA_ARCHITECTURES MATCHES "^[0-9]+[a-z]?-virtual$")
      list(FILTER quick_sources EXCLUDE REGEX "/wide_")
    endif()
    set_property(SOURCE ${quick_sources} APPEND PROPERTY COMPILE_OPTIONS --Ofast-compile=max)
  endif()
  target_sources(thimble PRIVATE $<TARGET_OBJECTS:thimble_gpu_code>)
  target_include_directories(thimble_settings SYSTEM INTERFACE
    ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  # Also defined for every other target that includes op_def.h.
  target_compile_definitions(thimble INTERFACE THIMBLE_WITH_CUDA)
  find_package(CUDAToolkit REQUIRED)
  target_link_libraries(thimble PUBLIC CUDA::cudart_static)
endif()
