# The library: everything in src/. Sources include each other as "thimble/<folder>/<file>.h", the path
# that users see after installation; a link in the build folder maps it to src/.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/include/thimble SYMBOLIC)

file(GLOB_RECURSE THIMBLE_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cc)
# Counting malloc replaces malloc for a whole program: programs of ours link it, the library does not.
list(FILTER THIMBLE_SOURCES EXCLUDE REGEX "malloc_interposer\\.cc$")

add_library(thimble STATIC ${THIMBLE_SOURCES})
add_library(thimble::thimble ALIAS thimble)
target_include_directories(thimble PUBLIC
  $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(thimble PUBLIC cxx_std_20)
target_link_libraries(thimble
  PUBLIC fmt::fmt Threads::Threads
  PRIVATE $<BUILD_INTERFACE:thimble_options> hwy::hwy $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

# SIMD targets: SSE4 as the floor of every 64-bit PC since 2008, AVX2, AVX-512; NEON elsewhere. The
# others Highway knows (SSSE3, AVX3_DL) would only add compile time.
target_compile_definitions(thimble PRIVATE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
# A product may be contracted to a fused multiply-add only where the source says so (hn::MulAdd), or
# results would differ between the compiler's moods.
target_compile_options(thimble PRIVATE -ffp-contract=off)
