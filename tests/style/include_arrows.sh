#!/usr/bin/env bash
# Fails on an include that points the wrong way between folders of src/, or between the folders inside
# one of them that the table lists.   include_arrows.sh ROOT
set -euo pipefail
cd "$1"

declare -A allowed
while IFS=: read -r folder others; do
  allowed[$folder]=" $others "
done < <(grep -v '^#' tests/style/include_arrows.txt)

includes=$(grep -rnE --include='*.h' --include='*.cc' --include='*.inc' \
  --include='*.cu' --include='*.cuh' \
  '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' src)
faults=0
while IFS=: read -r file line text; do
  from=${file#src/}
  from=${from%%/*}
  if [[ ! $text =~ \"thimble/([a-z_]+)/ ]]; then
    echo "$file:$line: $text: write the path as \"thimble/<folder>/<file>\""
  elif [[ ! -v allowed[$from] ]]; then
    echo "$file:$line: folder $from is not in tests/style/include_arrows.txt"
  else
    to=${BASH_REMATCH[1]}
    if [[ $to == "$from" && $text =~ \"thimble/($from/[a-z_]+)/ ]]; then
      room=${file#src/}
      room=${room%/*}
      [[ -v allowed[$room] && $room != "$from" ]] || continue
      from=$room to=${BASH_REMATCH[1]}
    fi
    [[ $to == "$from" || ${allowed[$from]} == *" $to "* ]] && continue
    echo "$file:$line: $from must not include $to (tests/style/include_arrows.txt)"
  fi
  faults=$((faults + 1))
done <<<"$includes"
echo "$(wc -l <<<"$includes") includes, $faults wrong"
((faults == 0))
