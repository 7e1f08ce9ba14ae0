#!/usr/bin/env bash
# Fails on files that are too long to be read: sources above 500 lines, folder READMEs above 30, and
# on folders of src/ without a README.   file_sizes.sh ROOT
set -euo pipefail
cd "$1"

faults=0
fault() {
  echo "$1"
  faults=$((faults + 1))
}
# check_lines MOST FILE...
check_lines() {
  local most=$1 file lines
  shift
  while read -r lines file; do
    ((lines <= most)) || fault "$file has $lines lines, at most $most are allowed"
  done < <(wc -l "$@" /dev/null | sed '$d')  # the last line is the total
}

mapfile -t sources < <(find src apps bench -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \
  -o -name '*.cuh' -o -name '*.inc' \))
mapfile -t readmes < <(find src -name README.md)
check_lines 500 "${sources[@]}"
check_lines 30 "${readmes[@]}"
for folder in src/*/; do
  [[ -f ${folder}README.md ]] || fault "$folder has no README.md"
done
echo "${#sources[@]} sources, ${#readmes[@]} READMEs, $faults faults"
((faults == 0))
