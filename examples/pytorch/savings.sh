#!/usr/bin/env bash
# Searches the smallest cap of savings.py with and without its two savings, side by side: each has a cap of its own.
#
# Run: bash examples/pytorch/savings.sh
set -eu
cd "$(dirname "$0")"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
searches=()
for options in "" "--amp" "--checkpoint" "--checkpoint --amp"; do
  # shellcheck disable=SC2086
  python3 smallest_cap.py python3 savings.py $options >"$results/of$options" &
  searches+=($!)
done
for search in "${searches[@]}"; do wait "$search"; done
for options in "" "--amp" "--checkpoint" "--checkpoint --amp"; do
  echo "${options:-neither}: $(cat "$results/of$options")"
done
