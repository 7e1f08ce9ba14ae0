# All from Debian's packages; docs/decisions/ has a line for each.
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
