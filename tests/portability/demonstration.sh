#!/usr/bin/env bash
# What every kind of package is put through, on the fake driver that lies beside this file with the probe and train_fake: a cap
# by LD_PRELOAD (with the control that there is none without), then the launcher, a program that is refused and recovers, and the
# reader. Run by scripts/package_test.sh in clean roots and by scripts/cross_test.sh under the emulator. Fails at the first thing
# that is not so; leaves nothing behind.
#   demonstration.sh FOLDER-OF-PROGRAMS LIBRARY
set -e
here=$(dirname "$(realpath "$0")") bin=$1 library=$2 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$here FAKE_CUDA_STATE=$work/machine GPUCAP_DIR=$work/segments
if "$here/portability_probe" 2048; then echo "the probe was capped without gpucap"; exit 1; fi
LD_PRELOAD=$library GPUCAP_LIMIT=2G GPUCAP_LOG=off "$here/portability_probe" 2048
"$bin/gpucap" run --limit 4G -- "$here/train_fake" 2 >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err"; exit 1; }
grep recovered "$work/out"
grep 'gpucap: refused' "$work/err"
"$bin/gpucap-top" events | grep -i refuse
