#!/usr/bin/env bash
# The program can be copied to another machine: it links the C run-time and nothing else.
#   one_file.sh PROGRAM
set -euo pipefail
allowed='^(libc\.so\.6|libm\.so\.6|ld-linux-.*\.so\..)$'
linked=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ -n $linked ]] || { echo "$1 links nothing?"; exit 1; }
more=$(grep -vE "$allowed" <<<"$linked" || true)
if [[ -n $more ]]; then
  echo "$1 links more than the C run-time: $more"
  exit 1
fi
# The program says what it is.
version=$("$1" --version)
echo "$version"
grep -qE '^thimble [0-9]+\.[0-9]+\.[0-9]+$' <<<"$version"
grep -qE '^SIMD: .*; this machine runs [a-z0-9]+$' <<<"$version"
grep -qE '^GPU code: (none|(sm|compute)_[0-9]+)' <<<"$version"
