#!/usr/bin/env bash
# Fails where a source has no test twin.   test_twins.sh ROOT
# The twin of src/a/…/b.cc is b_test.cc anywhere below tests/a/. Files of a folder that is one unit
# (an op, the matrix product) may share a twin named after the folder: src/ops/relu/relu_cpu.cc and
# tests/ops/relu_test.cc. tests/style/without_test_twin.txt lists the exceptions: path, then why.
set -euo pipefail
cd "$1"
exceptions=tests/style/without_test_twin.txt

has_twin() {
  local stem=${1##*/} folder=${1%/*} top=${1#src/}
  top=${top%%/*}
  stem=${stem%.cc}
  folder=${folder##*/}
  local -a names=(-name "${stem}_test.cc")
  [[ $folder == "$top" ]] || names+=(-o -name "${folder}_test.cc")
  [[ -d tests/$top && -n $(find "tests/$top" \( "${names[@]}" \) -print -quit) ]]
}

sources=$(find src -name '*.cc' | sort)
faults=0
fault() {
  echo "$1"
  faults=$((faults + 1))
}
while read -r source; do
  listed=$(grep -c "^$source " "$exceptions" || true)
  if has_twin "$source"; then
    ((listed == 0)) || fault "$source has a test now: remove its line from $exceptions"
  else
    ((listed > 0)) || fault "$source has no test: write tests/.../$(basename "$source" .cc)_test.cc"
  fi
done <<<"$sources"
while read -r source reason; do
  [[ -f $source ]] || fault "$exceptions: there is no $source"
  [[ -n $reason ]] || fault "$exceptions: $source has no reason"
done < <(grep -v '^#' "$exceptions")
echo "$(wc -l <<<"$sources") sources, $faults faults"
((faults == 0))
