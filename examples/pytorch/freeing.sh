#!/usr/bin/env bash
# What goes back to the driver: see freeing.py.
#
# Run: bash examples/pytorch/freeing.sh
set -eu
cd "$(dirname "$0")"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
gpucap run --limit 8G -- python3 -u freeing.py | tee "$log"
pid=$(sed -n 's/^pid //p' "$log")
echo "\$ gpucap-top events -p $pid    # what PyTorch took and gave back first"
gpucap-top events -p "$pid" | grep -E ' (charge|release) +cuda(Malloc|Free) ' | sed -n 1,6p
