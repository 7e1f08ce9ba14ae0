#!/usr/bin/env bash
# Installs a build into a fresh prefix, then configures, builds and runs an example against it from
# a copy outside the tree, as a user would.
#   install_test.sh CMAKE BUILD_FOLDER SOURCE_FOLDER WORK_FOLDER CXX_COMPILER
set -euo pipefail
cmake=$1 build=$2 source=$3 work=$4 compiler=$5
prefix=$work/prefix

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"
"$prefix/bin/thimble" --version
grep -q '^\.TH THIMBLE 1 ' "$prefix/share/man/man1/thimble.1"
grep -q '^complete -F _thimble thimble$' "$prefix/share/bash-completion/completions/thimble"

internal=$(find "$prefix/include" -name '*-inl.h' -o -name '*.inc' -o -name '*.cc' -o -name '*_cpu.h')
if [[ -n $internal ]]; then
  echo "internal files were installed: $internal" >&2
  exit 1
fi

cp -r "$source/examples/own_network" "$work/own_network"
"$cmake" -S "$work/own_network" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler"
"$cmake" --build "$work/build"
"$work/build/own_network" 3 "$work/run" | tee "$work/output"
grep -q '^measured peak' "$work/output"
test -s "$work/run/weights.safetensors"
