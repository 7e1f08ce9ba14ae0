# cmake --install: the library, its headers as thimble/…, and the package for find_package(thimble).
# The command line installs itself (apps/thimble).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/thimble)

install(TARGETS thimble EXPORT thimbleTargets ARCHIVE)
install(EXPORT thimbleTargets NAMESPACE thimble:: DESTINATION ${package_folder})

# Internal headers are excluded: those included once per SIMD target, those of single ops, parsers.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION include/thimble
  FILES_MATCHING PATTERN "*.h"
  PATTERN "*-inl.h" EXCLUDE
  REGEX "/src/ops/[^/.]+$" EXCLUDE
  PATTERN "safetensors_parser.h" EXCLUDE
  PATTERN "toml_parser.h" EXCLUDE)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/thimbleConfig.cmake.in
  ${CMAKE_BINARY_DIR}/thimbleConfig.cmake INSTALL_DESTINATION ${package_folder})
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/thimbleConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/thimbleConfig.cmake ${CMAKE_BINARY_DIR}/thimbleConfigVersion.cmake
  DESTINATION ${package_folder})
