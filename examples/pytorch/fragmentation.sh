#!/usr/bin/env bash
# A cache in pieces, and its cure: see fragmentation.py.
#
# Run: bash examples/pytorch/fragmentation.sh
set -eu
cd "$(dirname "$0")"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "== default"
gpucap run --limit 4G -- python3 -u fragmentation.py | tee "$log"
pid=$(sed -n 's/^pid //p' "$log")
echo "\$ gpucap-top events -p $pid    # what was charged and refused"
gpucap-top events -p "$pid" | grep -E ' (charge|refuse) '
echo "== expandable segments"
PYTORCH_ALLOC_CONF=expandable_segments:True PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
  gpucap run --limit 4G -- python3 -u fragmentation.py
