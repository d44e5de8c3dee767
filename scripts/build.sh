#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json into build/<preset>, with all cores. Default: release.
#   scripts/build.sh [preset] [targets; all of them if none is named]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
preset=${1:-release}
[ $# -gt 0 ] && shift
cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
