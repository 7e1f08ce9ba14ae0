#!/usr/bin/env bash
# Fails where clang-format would lay out a source differently.   format.sh ROOT
set -euo pipefail
cd "$1"
mapfile -t folders < <(find src apps examples bench tests fuzz -maxdepth 0 -type d 2>/dev/null)
mapfile -t sources < <(find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \
  -o -name '*.cuh' \))
clang-format --dry-run -Werror "${sources[@]}"
echo "${#sources[@]} sources, all in the layout of .clang-format"
