#!/usr/bin/env bash
# Proves that the style checks see faults: plants them in a tiny tree.   planted_faults.sh
set -euo pipefail
checks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A tree without faults: two folders, one source with and one without a twin.
plant() {
  rm -rf "${work:?}/tree"
  mkdir -p "$work/tree"/{src/base,src/ops/relu,apps,bench,tests/base,tests/ops,tests/style}
  mkdir -p "$work/tree"/fuzz/corpus/size
  cd "$work/tree"
  printf '# arrows\nbase:\nops: base\n' >tests/style/include_arrows.txt
  printf '# exceptions\nsrc/base/alone.cc there is nothing to test\n' \
    >tests/style/without_test_twin.txt
  echo '#include "thimble/base/twin.h"' | tee src/base/twin.cc src/base/alone.cc >src/base/twin.h
  echo '#include "thimble/base/twin.h"' >src/ops/relu/relu_cpu.cc
  touch tests/base/twin_test.cc tests/ops/relu_test.cc src/base/README.md src/ops/README.md
  touch fuzz/size_fuzz.cc fuzz/corpus/size/zero fuzz/size.dict
}

# expect pass|fail CHECK WHAT, on the tree as it is; then plants a new one.
expect() {
  local outcome=pass
  "$checks/$2.sh" "$work/tree" >"$work/output" 2>&1 || outcome=fail
  if [[ $outcome != "$1" ]]; then
    echo "$2: expected $1, got $outcome for: $3"
    cat "$work/output"
    exit 1
  fi
  plant
}

plant
for check in include_arrows gpu_includes kernels_wait test_twins file_sizes fuzz_targets; do
  expect pass "$check" "a clean tree"
done

echo '#include "thimble/ops/relu/relu.h"' >>src/base/twin.h
expect fail include_arrows "a wrong arrow"
echo '  #  include "thimble/ops/relu/relu.h"' >>src/base/twin.cc
expect fail include_arrows "a wrong arrow with odd spacing"
echo '//  #include "thimble/ops/relu/relu.h"' >>src/base/twin.h
expect pass include_arrows "a wrong arrow in a comment"
echo '#include "twin.h"' >>src/base/twin.cc
expect fail include_arrows "a path that does not begin with thimble/"
for ending in cu cuh inc; do
  echo '#include "thimble/ops/relu/relu.h"' >src/base/twin.$ending
  expect fail include_arrows "a wrong arrow in a file .$ending"
done
printf 'base/inner:\nbase/outer: base/inner\n' >>tests/style/include_arrows.txt
mkdir src/base/inner && echo '#include "thimble/base/outer/a.h"' >src/base/inner/b.h
expect fail include_arrows "a wrong arrow inside a folder"
printf 'base/inner:\nbase/outer: base/inner\n' >>tests/style/include_arrows.txt
mkdir src/base/outer && echo '#include "thimble/base/inner/b.h"' >src/base/outer/a.h
expect pass include_arrows "a right arrow inside a folder"
mkdir src/new && echo '#include "thimble/base/twin.h"' >src/new/new.cc
expect fail include_arrows "a folder that the table does not know"

echo '#include <fmt/format.h>' >>src/base/twin.h
expect pass gpu_includes "fmt in a header that GPU code does not include"
echo '#include "thimble/base/twin.h"' >src/ops/relu/relu_cuda.cu
expect pass gpu_includes "GPU code that includes no library"
echo '#include "thimble/base/twin.h"' >src/ops/relu/relu_cuda.cu
echo '#include <fmt/format.h>' >>src/base/twin.h
expect fail gpu_includes "GPU code that reaches fmt by a header"
echo '  #  include <hwy/highway.h>' >src/ops/relu/relu_cuda.cu
expect fail gpu_includes "GPU code that includes a library itself"
mkdir src/graph && echo '#include "thimble/base/twin.h"' >src/graph/kernel.h
echo '#include <fmt/format.h>' >>src/base/twin.h
expect fail gpu_includes "fmt behind graph/kernel.h"

kernel='template <class T>\n__global__ void __launch_bounds__(8)\n    Fill(T* x) {\n  %s\n  *x = 1;\n}\n'
printf "$kernel" 'WaitForKernelsBefore();' >src/base/twin.cuh
expect pass kernels_wait "a kernel that waits"
printf "$kernel" '// WaitForKernelsBefore();' >src/base/twin.cuh
expect fail kernels_wait "a kernel that waits in a comment"
printf "$kernel$kernel" 'WaitForKernelsBefore();' '' >src/base/twin.cu
expect fail kernels_wait "a kernel that does not wait, after one that does"
printf "__global__ void Nothing() {}\n$kernel" 'WaitForKernelsBefore();' >src/base/twin.cu
expect fail kernels_wait "a kernel on one line, before one that waits"

rm tests/base/twin_test.cc
expect fail test_twins "a source without a twin"
rm tests/ops/relu_test.cc
expect fail test_twins "an op without a test"
touch tests/base/alone_test.cc
expect fail test_twins "an exception that has a twin by now"
rm src/base/alone.cc
expect fail test_twins "an exception for a file that is gone"
printf 'src/base/alone.cc\n' >tests/style/without_test_twin.txt
expect fail test_twins "an exception without a reason"

seq 501 | sed 's/^/\/\/ /' >src/base/twin.cc
expect fail file_sizes "a source of 501 lines"
for ending in cu cuh inc; do
  seq 501 | sed 's/^/\/\/ /' >src/base/twin.$ending
  expect fail file_sizes "a file .$ending of 501 lines"
done
seq 31 >src/base/README.md
expect fail file_sizes "a README of 31 lines"
rm src/ops/README.md
expect fail file_sizes "a folder without a README"
if command -v clang-format >/dev/null; then
  for ending in h cc cu cuh; do
    echo 'int  misplaced ;' >src/base/planted.$ending
    expect fail format "a badly formatted file .$ending"
  done
  expect pass format "a clean tree"
else
  echo "clang-format is not installed: its faults were not planted"
fi

rm fuzz/corpus/size/zero
expect fail fuzz_targets "a target without inputs"
rm fuzz/size_fuzz.cc
expect fail fuzz_targets "inputs without a target"
touch fuzz/other.dict
expect fail fuzz_targets "words without a target"
echo "all planted faults were seen"
