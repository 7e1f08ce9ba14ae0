#!/usr/bin/env bash
# Fails where GPU code, or graph/kernel.h, which it includes, reaches a header of a library (fmt and
# the others): nvcc would read it for every source and architecture.   gpu_includes.sh ROOT
set -euo pipefail
cd "$1"
libraries='fmt|hwy|nlohmann|toml\+\+|CLI'

declare -A way  # file -> how it was reached
mapfile -t queue < <(find src -name '*.cu'; find src/graph/kernel.h 2>/dev/null || true)
for file in "${queue[@]}"; do way[$file]=$file; done
faults=0
for ((next = 0; next < ${#queue[@]}; ++next)); do
  file=${queue[next]}
  while read -r header; do
    if [[ $header =~ ^\<($libraries)/ ]]; then
      echo "${way[$file]} includes $header"
      faults=$((faults + 1))
    elif [[ $header =~ ^\"thimble/(.*)\"$ && -f src/${BASH_REMATCH[1]} ]]; then
      included=src/${BASH_REMATCH[1]}
      [[ -v way[$included] ]] && continue
      way[$included]="${way[$file]} -> $included"
      queue+=("$included")
    fi
  done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*([<"][^>"]+[>"]).*/\1/p' "$file")
done
echo "${#queue[@]} files, $faults faults"
((faults == 0))
