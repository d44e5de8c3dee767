#!/usr/bin/env bash
# A healthy and a leaking loop side by side, looked at every two seconds: see leak.py.
#
# Run: bash examples/pytorch/leak.sh
set -eu
cd "$(dirname "$0")"
gpucap run --quiet --limit 4G -- python3 leak.py &
healthy=$!
gpucap run --quiet --limit 4G -- python3 leak.py --leak &
leaking=$!
until [ "$(gpucap-top --once --keep 0 | grep -c 'leak\.py')" -ge 2 ]; do
  kill -0 "$healthy"
  kill -0 "$leaking"
  sleep 0.5
done
for look in 1 2 3; do
  sleep 2
  echo "\$ gpucap-top --once --keep 0    # look $look"
  gpucap-top --once --keep 0
done
wait "$healthy"
wait "$leaking"
