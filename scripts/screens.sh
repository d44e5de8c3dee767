#!/usr/bin/env bash
# Makes the pictures of gpucap-top's screen in docs/screens: text, taken from a real terminal (tmux) while real programs
# run under gpucap. On a machine with a GPU and PyTorch those are examples/train.py; elsewhere examples/train_fake.cpp on
# the fake driver of the tests, and the pictures' page says so. Run it again after the screen has changed.
#
#   scripts/screens.sh [FOLDER]     where the programs were built; default build/release, built first
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

command -v tmux >/dev/null || die "tmux was not found: scripts/setup.sh --dev installs it"
bin=${1:-build/release}
if [ $# -eq 0 ]; then
  quietly build/logs/screens-build.log scripts/build.sh release libgpucap.so gpucap gpucap-top examples/train_fake \
    fake_cuda/libcuda.so.1 fake_cuda/libnvidia-ml.so.1 || die "the build failed"
fi

# As in demo.sh: nvidia-smi may hang on a broken machine, and importing torch takes a while.
fake=1
if [ -z "${GPUCAP_DEMO_FAKE:-}" ] && command -v nvidia-smi >/dev/null && timeout 30 nvidia-smi -L >/dev/null 2>&1 &&
  timeout 120 python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' >/dev/null 2>&1; then
  fake=0
fi
exec python3 scripts/screens.py "$bin" "$fake" docs/screens
