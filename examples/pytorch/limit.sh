#!/usr/bin/env bash
# Half of the card in two ways: see limit.py.
#
# Run: bash examples/pytorch/limit.sh
set -eu
cd "$(dirname "$0")"
echo "== set_per_process_memory_fraction(0.5), and no cap"
gpucap run -- python3 limit.py --fraction
echo "== a cap of 50%"
gpucap run --limit 50% -- python3 limit.py
