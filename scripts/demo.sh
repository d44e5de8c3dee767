#!/usr/bin/env bash
# The demonstration: a training under a cap of 4 GiB. It grows its batch until it is refused, recovers and goes on, while
# gpucap-top watches it. On a machine with a GPU and PyTorch it is examples/train.py; elsewhere examples/train_fake.cpp on
# the fake driver of the tests. Fails if any of what it promises to show did not happen.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

headline() { printf '\n== %s\n' "$*"; }
failures=0
expect() { # "what should have happened" COMMAND...
  local what=$1
  shift
  if ! "$@" >/dev/null; then
    say "demo: did not happen: $what"
    failures=$((failures + 1))
  fi
}

headline "Building build/release (quick when it is there)"
scripts/setup.sh
# What the demonstration uses; the tests are left for scripts/test.sh.
quietly build/logs/demo-build.log scripts/build.sh release libgpucap.so gpucap gpucap-top examples/train_fake \
  fake_cuda/libcuda.so.1 fake_cuda/libnvidia-ml.so.1 || die "the build failed"
bin=build/release

# A directory of its own, so that the table and the log show this demonstration and nothing else.
scratch=$(mktemp -d)
shared=$(mktemp -d /dev/shm/gpucap-demo.XXXXXX 2>/dev/null || mktemp -d)
training=""
cleanup() {
  if [ -n "$training" ]; then kill "$training" 2>/dev/null && wait "$training" 2>/dev/null || true; fi
  rm -rf "$scratch" "$shared"
}
trap cleanup EXIT
export GPUCAP_DIR=$shared/segments

# nvidia-smi may hang on a broken machine, and importing torch takes a while: ask in this order, with limits.
has_real_gpu() {
  [ -z "${GPUCAP_DEMO_FAKE:-}" ] && command -v nvidia-smi >/dev/null && timeout 30 nvidia-smi -L >/dev/null 2>&1 &&
    timeout 120 python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' >/dev/null 2>&1
}

if has_real_gpu; then
  headline "A PyTorch training on this machine's GPU ($(nvidia-smi -L | head -n 1 | sed 's/ (UUID.*//')), capped at 4 GiB"
  command=(python3 -u examples/train.py --seconds 8)
  library_path=${LD_LIBRARY_PATH:-}
else
  headline "No GPU with PyTorch here: a training-shaped program on the FAKE driver (a test double), capped at 4 GiB"
  command=("$bin/examples/train_fake" 8)
  library_path=$PWD/$bin/fake_cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export FAKE_CUDA_STATE=$shared/fake-cuda
fi

say "\$ gpucap run --limit 4G -- ${command[*]}"
LD_LIBRARY_PATH=$library_path "$bin/gpucap" run --limit 4G -- "${command[@]}" \
  > >(tee "$scratch/stdout") 2> >(tee "$scratch/stderr" >&2) &
training=$!

# Once it has recovered, and a moment later, look at it from outside.
for _ in $(seq 1 600); do
  grep -q '^recovered' "$scratch/stdout" 2>/dev/null && break
  kill -0 "$training" 2>/dev/null || break
  sleep 0.2
done
sleep 1.5
table=$("$bin/gpucap-top" --once 2>&1) || true

status=0
wait "$training" || status=$?
training=""
sleep 0.3 # the last lines may still be in the pipes
events=$("$bin/gpucap-top" events 2>&1) || true

headline "While it ran: gpucap-top --once"
say "$table"
headline "The refusal, as the program's stderr showed it"
grep '^gpucap: refused' "$scratch/stderr" | head -n 3 || true
headline "Afterwards: gpucap-top events (around the refusal, and its last lines)"
grep -i -m 1 -B 3 -A 2 'refuse' <<<"$events" || true
say "..."
tail -n 4 <<<"$events"

expect "the training ends well (its exit status was $status)" test "$status" -eq 0
expect "a line on stderr says that gpucap refused" grep -q '^gpucap: refused' "$scratch/stderr"
expect "the program was out of memory" grep -q '^out of memory at batch' "$scratch/stdout"
expect "the program recovered" grep -q '^recovered' "$scratch/stdout"
expect "the program took more steps after that" grep -q '^done' "$scratch/stdout"
expect "gpucap-top shows the program and its cap" grep -E '(python3|train_fake)' <<<"$(grep -E '4\.00 ?GiB|4\.0 ?GiB|4 ?GiB' <<<"$table")"
expect "the event log holds the refusal" grep -qi 'refuse' <<<"$events"

if [ "$failures" -gt 0 ]; then die "$failures of the things above did not happen"; fi
headline "Done. On your own program:  LD_PRELOAD=$PWD/$bin/libgpucap.so GPUCAP_LIMIT=4G python train.py"
