#!/usr/bin/env bash
# Installs what is missing to build and test gpucap, and nothing that is there: Debian packages, CUDA headers where there
# is no toolkit, and a small Python environment for the tests that run real CUDA clients on the fake driver.
# Quick when nothing is missing. What it fetches goes into .deps/, which git ignores; only packages touch the system.
#
#   scripts/setup.sh [--dev] [--both-headers] [--clients] [--cross] [--packages]
#     --dev           also clang, clang-format 14, valgrind and tmux (what scripts/test.sh checks with)
#     --both-headers  the headers and runtimes of CUDA 12 and 13 into .deps/, even where a toolkit is installed
#     --clients       .deps/venv with nvidia-ml-py and cuda-bindings, .deps/jupyter-<version of Python> with Jupyter's kernel
#     --cross         the compiler and the emulator for aarch64: what scripts/cross_test.sh needs
#     --packages      what builds and checks packages, and other user spaces: package.sh, package_test.sh, portability_test.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

cuda13_wheel="nvidia-cuda-runtime==13.0.96"
cuda12_wheel="nvidia-cuda-runtime-cu12==12.9.79"
client_wheels="nvidia-ml-py==13.580.126 cuda-bindings==13.3.1 cuda-pathfinder==1.5.6"
jupyter_wheels="jupyter-client==8.10.0 ipykernel==7.4.0"

dev=0 both_headers=0 clients=0 cross=0 packages=0
for argument in "$@"; do
  case $argument in
    --dev) dev=1 ;;
    --both-headers) both_headers=1 ;;
    --clients) clients=1 ;;
    --cross) cross=1 ;;
    --packages) packages=1 ;;
    *) die "unknown option '$argument' (known: --dev --both-headers --clients --cross --packages)" ;;
  esac
done

# A toolkit counts if CMake would find it (nvcc beside the headers) and it is CUDA 12 or later.
has_toolkit() {
  local home version
  for home in "${CUDAToolkit_ROOT:-}" "${CUDA_PATH:-}" "$(dirname "$(dirname "$(command -v nvcc || echo /none/none)")")" \
    /usr/local/cuda; do
    [ -n "$home" ] && [ -x "$home/bin/nvcc" ] && [ -f "$home/include/cuda.h" ] || continue
    version=$(awk '$1 == "#define" && $2 == "CUDA_VERSION" { print $3; exit }' "$home/include/cuda.h")
    [ "${version:-0}" -ge 12000 ] && return 0
  done
  return 1
}

need_wheels=0
if [ "$both_headers" -eq 1 ] || [ "$clients" -eq 1 ] || ! has_toolkit; then need_wheels=1; fi

# --- system packages: "command:package" is satisfied by the command, "package" by dpkg ---
wanted="cmake:cmake ninja:ninja-build gcc:gcc g++:g++ python3:python3 libspdlog-dev libfmt-dev libgtest-dev libgmock-dev \
libbenchmark-dev libcli11-dev nlohmann-json3-dev libncurses-dev"
[ "$cross" -eq 1 ] && wanted="$wanted aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static"
# gcc-multilib itself cannot be installed beside a cross compiler; what it stands for can.
[ "$packages" -eq 1 ] && wanted="$wanted rpmbuild:rpm fakeroot:fakeroot lintian:lintian debootstrap:debootstrap scdoc:scdoc \
musl-gcc:musl-tools gcc-12-multilib pkg-config:pkg-config"
[ "$dev" -eq 1 ] && wanted="$wanted clang++:clang clang-format-14:clang-format-14 git:git valgrind:valgrind scdoc:scdoc tmux:tmux"

missing=""
for item in $wanted; do
  case $item in
    *:*) command -v "${item%%:*}" >/dev/null 2>&1 || missing="$missing ${item##*:}" ;;
    *)
      if command -v dpkg-query >/dev/null 2>&1; then
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$item" 2>/dev/null || true)" = installed ] || missing="$missing $item"
      fi
      ;;
  esac
done
if [ "$need_wheels" -eq 1 ] && ! pick_python >/dev/null; then missing="$missing python3-venv python3-pip"; fi
missing=${missing# }

if [ -n "$missing" ]; then
  if ! command -v apt-get >/dev/null 2>&1; then
    say "This is not a Debian system, so nothing was installed. Needed, by Debian's names for them:"
    say "  $missing"
    say "and the development files of spdlog, fmt, GoogleTest with GoogleMock, Google Benchmark, CLI11, nlohmann-json and ncurses."
    exit 1
  fi
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true >/dev/null 2>&1; then
      as_root="sudo -n"
    else
      say "Packages are missing, and this needs root. Run:"
      say "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
      exit 1
    fi
  fi
  say "Installing: $missing"
  # The lists anew each time: what could not be fetched may have been replaced meanwhile.
  # shellcheck disable=SC2086
  persistently .deps/logs/apt-install.log $as_root env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -o Acquire::Retries=3 update &&
    apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@"' sh $missing ||
    die "apt-get could not install: $missing"
fi

cmake_version=$(cmake --version | awk 'NR == 1 { print $3 }')
[ "$(printf '3.25\n%s\n' "$cmake_version" | sort -V | head -n 1)" = 3.25 ] ||
  die "CMake 3.25 or later is needed; $(command -v cmake) is $cmake_version"

if [ "$need_wheels" -eq 1 ]; then
  python=$(pick_python) || die "no python3 (3.10 or later) with the modules venv, ensurepip and pip was found"
fi

# fetch_wheel NAME==VERSION SUBFOLDER TARGET: the files of one wheel below SUBFOLDER become TARGET, all or nothing.
fetch_wheel() {
  local wheel=$1 subfolder=$2 target=$3 scratch
  [ "$(cat "$target/.from" 2>/dev/null || true)" = "$wheel" ] && return 0
  say "Fetching $wheel into $target"
  mkdir -p .deps
  scratch=$(mktemp -d .deps/fetch.XXXXXX)
  if ! persistently .deps/logs/wheel.log "$python" -m pip --disable-pip-version-check download -q --no-deps --only-binary=:all: \
    -d "$scratch" "$wheel"; then
    rm -rf "$scratch"
    die "pip could not download $wheel (is PyPI reachable from here?)"
  fi
  "$python" -m zipfile -e "$scratch"/*.whl "$scratch/unpacked"
  if [ ! -f "$scratch/unpacked/$subfolder/include/cuda.h" ]; then
    rm -rf "$scratch"
    die "$wheel does not hold $subfolder/include/cuda.h"
  fi
  printf '%s\n' "$wheel" >"$scratch/unpacked/$subfolder/.from"
  rm -rf "$target"
  mv "$scratch/unpacked/$subfolder" "$target"
  rm -rf "$scratch"
}

if [ "$both_headers" -eq 1 ] || ! has_toolkit; then fetch_wheel "$cuda13_wheel" nvidia/cu13 .deps/cuda13; fi
if [ "$both_headers" -eq 1 ]; then fetch_wheel "$cuda12_wheel" nvidia/cuda_runtime .deps/cuda12; fi

if [ "$clients" -eq 1 ] && [ "$(cat .deps/venv/.from 2>/dev/null || true)" != "$client_wheels" ]; then
  say "Making .deps/venv with $client_wheels"
  rm -rf .deps/venv
  quietly .deps/logs/venv.log "$python" -m venv .deps/venv || die "$python could not make a virtual environment"
  # shellcheck disable=SC2086
  if ! persistently .deps/logs/clients.log .deps/venv/bin/python -m pip --disable-pip-version-check install -q --no-deps \
    --only-binary=:all: $client_wheels; then
    rm -rf .deps/venv
    die "pip could not install $client_wheels (is PyPI reachable from here?)"
  fi
  printf '%s\n' "$client_wheels" >.deps/venv/.from
fi

if [ "$clients" -eq 1 ]; then
  jupyter=.deps/jupyter-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [ "$(cat "$jupyter/.from" 2>/dev/null || true)" != "$jupyter_wheels" ]; then
    say "Making $jupyter with $jupyter_wheels and what they need"
    rm -rf "$jupyter"
    # shellcheck disable=SC2086
    if ! persistently .deps/logs/jupyter.log "$python" -m pip --disable-pip-version-check install -q --no-compile --only-binary=:all: \
      --target "$jupyter" $jupyter_wheels; then
      rm -rf "$jupyter"
      die "pip could not install $jupyter_wheels (is PyPI reachable from here?)"
    fi
    printf '%s\n' "$jupyter_wheels" >"$jupyter/.from"
  fi
fi
