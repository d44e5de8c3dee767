#!/usr/bin/env bash
# Changes the limit of a running program, up and then down: see live_limit.py.
#
# Run: bash examples/pytorch/live_limit.sh
set -eu
cd "$(dirname "$0")"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

wait_for() { # TEXT: until the program has said it, or has ended
  until grep -q "$1" "$log"; do kill -0 "$program" || { cat "$log"; exit 1; }; sleep 0.1; done
}

gpucap run --limit 4G -- python3 live_limit.py >"$log" 2>&1 &
program=$!
wait_for "5 GiB refused"
pid=$(sed -n 's/^pid //p' "$log")

echo "\$ gpucap set -p $pid --limit 6G"
gpucap set -p "$pid" --limit 6G
wait_for "5 GiB granted"

echo "\$ gpucap set -p $pid --limit 2G"
gpucap set -p "$pid" --limit 2G
wait "$program"
echo "== what the program printed"
cat "$log"
