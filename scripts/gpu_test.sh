#!/usr/bin/env bash
# The checks that need a real card (tests/gpu). Builds nothing of gpucap: it needs a finished build/release, made here or
# elsewhere, and python3. What a machine lacks (PyTorch, JAX, nvcc, ...) is reported as skipped, by name.
#   scripts/gpu_test.sh [--out DIR] [--group issue2|ways|rest|surfaces|groups|guide|all] [--only REGEX] [--jobs N] [--fake]
# Default DIR: build/gpu-test; default group: all. --jobs: how many ways of taking memory are tried side by side.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
for file in libgpucap.so gpucap gpucap-top; do
  [ -f "build/release/$file" ] || die "build/release/$file is missing: run scripts/build.sh first"
done
case " $* " in
  *" --out "* | *" --out="*) ;;
  *) set -- --out build/gpu-test "$@" ;;
esac
export PYTHONDONTWRITEBYTECODE=1
exec python3 tests/gpu/run_all.py "$@"
