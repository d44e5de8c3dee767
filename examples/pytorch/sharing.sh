#!/usr/bin/env bash
# Two trainings on one card, five times: see job.py.
#
# Run: bash examples/pytorch/sharing.sh
set -eu
cd "$(dirname "$0")"
export GPUCAP_LOG=error # the jobs tell of their refusals themselves

side_by_side() { # COMMAND...: as jobs "first" and "second", and how each ended
  "$@" python3 job.py first "${job[@]}" &
  local first=$!
  "$@" python3 job.py second "${job[@]}" &
  local second=$! a=0 b=0
  wait "$first" || a=$?
  wait "$second" || b=$?
  echo "exit status: first $a, second $b"
}

echo "== no cap: each wants 60 % of the card"
job=(--share 0.6)
side_by_side env

echo "== a cap of 45 % each: each wants 60 % of the card that it sees"
side_by_side gpucap run --quiet --limit 45% --

echo "== a group of 12 GiB: each may have 8 GiB and wants 7, and makes do with less"
job=(--gib 7 --make-do)
side_by_side gpucap run --quiet --limit 8G --group pair --group-limit 12G --

echo "== the same group, and who does not fit waits: each wants 7 GiB at once"
job=(--gib 7 --slices 1)
side_by_side gpucap run --quiet --limit 8G --group pair --group-limit 12G --on-limit wait:60s --

echo "== the first has nearly all of the card; the second starts when 8 GiB are free"
total=$(nvidia-smi -i 0 --query-gpu=memory.total --format=csv,noheader,nounits)
python3 job.py first --gib $((total / 1024 - 5)) --slices 1 --seconds 8 &
first=$!
until [ "$(nvidia-smi -i 0 --query-gpu=memory.free --format=csv,noheader,nounits)" -lt 8192 ]; do
  kill -0 "$first"
  sleep 0.2
done
gpucap run --quiet --wait 8G --limit 8G -- python3 job.py second --gib 6 --slices 1
wait "$first"
