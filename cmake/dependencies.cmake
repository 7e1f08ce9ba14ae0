# All from Debian's packages; docs/decisions/ has a line for each.
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # used header-only
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
