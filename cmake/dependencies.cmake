# All are Debian packages; docs/decisions/0002-dependencies.md explains each. Programs need
# none of them at run time: Highway's and fmt's headers are used without their shared libraries
# (docs/decisions/0017-one-file-that-runs-anywhere.md).
find_path(HIGHWAY_INCLUDE_DIR hwy/highway.h REQUIRED)
find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
