#!/usr/bin/env bash
# What gpucap costs on a real card: bench/run_pairs.py, then the table that docs/measurements.md takes. Builds nothing: it needs
# a finished build/release (libgpucap.so, gpucap-top, bench/), made here or elsewhere, and python3; PyTorch's rows need PyTorch and
# are reported as skipped without it.
#   scripts/gpu_bench.sh [--out DIR] [--only REGEX] [--minutes M] [--fake] [--quick]
#   scripts/gpu_bench.sh --plots [--out DIR] [--only REGEX]      how costs grow instead: bench/scaling.py
# Default DIR: build/bench. GPUCAP_BENCH_PYTHON names the python3 that has PyTorch, if it is another.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
for file in libgpucap.so gpucap-top bench/driver_bench bench/ring_rate bench/parts_bench; do
  [ -f "build/release/$file" ] || die "build/release/$file is missing: run scripts/build.sh first"
done
export PYTHONDONTWRITEBYTECODE=1
if [ "${1:-}" = --plots ]; then
  shift
  exec python3 bench/scaling.py "$@"
fi
exec python3 bench/run_pairs.py "$@"
