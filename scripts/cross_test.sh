#!/usr/bin/env bash
# Builds gpucap for aarch64 with Debian's cross compiler into build/aarch64 (library, tools, fake driver, tests), checks what
# was built, and runs tests of it under qemu-user on the fake driver, the library preloaded. Needs Debian with
# g++-aarch64-linux-gnu and qemu-user-static (scripts/setup.sh --cross installs them).
#
#   scripts/cross_test.sh [--build-only] [ctest options; default: all but what is left out below]
#
# Which tests run: the core, the wire format, the process object, the fake driver and the tools' parts; and end to end the cap
# by every way of allocating, configuration, NVML, look-ups of symbols, several runtimes, and plugins. Left out, because the
# emulator is not the machine:
#   the two programs as a whole, a process's life, groups under death and stress: they start and time hundreds of processes
#   clients, Programs: wheels and shells of this machine, which are no aarch64 programs
#   NotOursIsRefused: needs a second user, and the namespace below has one
#   OwnStartTime, ClosedItsDescriptors: the emulator makes up /proc/self/stat
#   coverage, layers, benchmarks, documents, fuzzing: no processor matters to them
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

left_out='^(e2e\.(life|clients|nvml_clients|Programs|GroupKill|GroupStress|GroupChildren)|gpucap_|gpu_checks|coverage|layers|bench|docs|manuals|fuzz|jupyter|stress)'
left_out+='|NotOursIsRefused|ProcFiles\.OwnStartTime|ClosedItsDescriptors'
build_only=0
if [ "${1:-}" = --build-only ]; then
  build_only=1
  shift
fi
[ "$(uname -m)" != aarch64 ] || die "this machine is aarch64 itself: scripts/test.sh tests it"
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$tool" >/dev/null || die "$tool was not found: scripts/setup.sh --cross installs it"
done

# Debian's arm64 packages of the same release, unpacked and not installed: the machine's own package lists stay as they are.
packages="libgtest-dev libgmock-dev libspdlog-dev libspdlog1.10 libfmt-dev libfmt9 libcli11-dev nlohmann-json3-dev libncurses-dev
libncurses6 libncursesw6 libtinfo6 libc6 libgcc-s1 libstdc++6"
fetch_packages() {
  local state mirror codename options
  [ "$(cat .deps/aarch64/.from 2>/dev/null || true)" = "$packages" ] && return 0
  say "Fetching arm64 packages into .deps/aarch64"
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
  mirror=$(apt-get indextargets --format '$(SITE)' "Created-By: Packages" "Codename: $codename" 2>/dev/null | head -n 1)
  [ -n "$mirror" ] || die "no Debian mirror is set up here for $codename"
  rm -rf .deps/aarch64
  state=$(mktemp -d "$root/.deps/apt.XXXXXX")
  mkdir -p "$state/lists/partial" "$state/debs" .deps/aarch64
  printf 'deb [arch=arm64] %s %s main\n' "$mirror" "$codename" >"$state/sources.list"
  options="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists=$state/lists -o Dir::State::status=/dev/null
    -o Dir::Etc::sourcelist=$state/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o APT::Sandbox::User="
  # shellcheck disable=SC2086
  { quietly .deps/logs/aarch64-update.log apt-get $options update &&
    (cd "$state/debs" && quietly "$root/.deps/logs/aarch64-download.log" apt-get $options download $packages); } || {
    rm -rf "$state"
    die "the arm64 packages could not be fetched"
  }
  for package in "$state"/debs/*.deb; do dpkg-deb -x "$package" .deps/aarch64; done
  rm -rf "$state"
  printf '%s\n' "$packages" >.deps/aarch64/.from
}

fetch_packages
cuda=$(sed -n 's/^CUDAToolkit_INCLUDE_DIR[^=]*=//p' build/release/CMakeCache.txt 2>/dev/null || true)
[ -f .deps/cuda13/include/cuda.h ] && cuda=$root/.deps/cuda13/include
[ -n "$cuda" ] || die "no CUDA headers: scripts/setup.sh --both-headers fetches them"
cmake -S . -B build/aarch64 -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64-linux-gnu.cmake" \
  -DGPUCAP_BENCH=OFF -DGPUCAP_CUDA_INCLUDE="$cuda"
cmake --build build/aarch64 --parallel "${GPUCAP_JOBS:-$(nproc)}"
for file in libgpucap.so gpucap gpucap-top fake_cuda/libcuda.so.1; do
  LC_ALL=C readelf -h "build/aarch64/$file" | grep -q 'Machine: *AArch64' || die "build/aarch64/$file is not for aarch64"
done
[ "$build_only" -eq 0 ] || exit 0

# Tests start programs, and those more programs: the kernel has to know what to do with each. In a namespace of our own it is
# told (binfmt_misc is per user namespace since Linux 6.7), and the arm64 loader and C library are laid over /usr/lib.
[ $# -gt 0 ] || set -- --exclude-regex "$left_out"
run='
set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
mount -t overlay overlay -o "lowerdir=$PWD/.deps/aarch64/lib:$PWD/.deps/aarch64/usr/lib:/usr/lib" /usr/lib
exec ctest --test-dir build/aarch64 --output-on-failure --no-tests=error --timeout 600 "$@"'
unshare --user --map-root-user --mount true 2>/dev/null || die "user namespaces are not allowed here: built, but not run"
exec unshare --user --map-root-user --mount bash -c "$run" bash --parallel "${GPUCAP_JOBS:-$(nproc)}" "$@"
