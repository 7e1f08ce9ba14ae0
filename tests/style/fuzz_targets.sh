#!/usr/bin/env bash
# Fails where a fuzz target has no inputs to start from, or inputs or words have no target.
#   fuzz_targets.sh ROOT
set -euo pipefail
cd "$1"
faults=0
fault() {
  echo "$1"
  faults=$((faults + 1))
}
shopt -s nullglob
for source in fuzz/*_fuzz.cc; do
  name=$(basename "$source" _fuzz.cc)
  inputs=(fuzz/corpus/"$name"/*)
  ((${#inputs[@]} > 0)) || fault "$source has no inputs: add some to fuzz/corpus/$name"
done
for path in fuzz/corpus/* fuzz/*.dict; do
  name=$(basename "$path" .dict)
  [[ -f fuzz/${name}_fuzz.cc ]] || fault "$path: there is no fuzz/${name}_fuzz.cc"
done
echo "$faults faults"
((faults == 0))
