# Installs missing Debian packages; sourced by quickstart and check. If none is missing, apt is not
# called.

# Required by the build and its tests; docs/decisions/0002-dependencies.md has the reasons.
THIMBLE_PACKAGES=(g++ cmake ninja-build libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libtomlplusplus-dev libgtest-dev libgmock-dev)
# For the benchmarks, which check builds to keep them working; without it one of them is not built.
THIMBLE_BENCH_PACKAGES=(libbenchmark-dev)
# For the fuzz targets: clang with its runtimes.
THIMBLE_FUZZ_PACKAGES=(clang libclang-rt-14-dev)

say() { printf '\n== %s\n' "$*"; }

# Runs a command as root, with sudo if necessary.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "cannot install packages without root or sudo; install them with: apt-get install ${missing[*]}" >&2
    return 1
  fi
}

# install_packages NAME...
install_packages() {
  local -a missing=()
  local package
  for package in "$@"; do
    dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi
  say "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Uses a compiler cache if it is installed.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  # Required for precompiled headers.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi
