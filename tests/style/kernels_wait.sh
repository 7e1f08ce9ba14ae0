#!/usr/bin/env bash
# Fails where a kernel in src/ does not call WaitForKernelsBefore (device/cuda/launch_early.cuh): in
# a graph it would begin before its inputs are written, and its results would be wrong now and then.
#   kernels_wait.sh ROOT
set -euo pipefail
cd "$1"
mapfile -t files < <(find src -name '*.cu' -o -name '*.cuh' | sort)
if ((${#files[@]} == 0)); then
  echo "no GPU code"
  exit 0
fi
# A kernel ends with a brace at the beginning of a line, or at the end of its first line.
awk '
  function finish() {
    ++kernels
    if (text !~ /[^A-Za-z_]WaitForKernelsBefore\([A-Za-z:]*\);/) {
      printf "%s:%d: the kernel does not call WaitForKernelsBefore\n", file, line
      ++faults
    }
    inside = 0
  }
  { sub(/\/\/.*/, "") }
  FNR == 1 && inside { finish() }
  !inside && /(^|[^A-Za-z_])__global__([^A-Za-z_]|$)/ { inside = 1; text = ""; file = FILENAME; line = FNR }
  inside { text = text "\n" $0 }
  inside && (/^}/ || (FNR == line && /}[[:space:]]*$/)) { finish() }
  END {
    if (inside) finish()
    printf "%d kernels, %d faults\n", kernels, faults
    exit (faults > 0)
  }' "${files[@]}"
