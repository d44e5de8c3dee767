#!/usr/bin/env bash
# Builds gpucap for aarch64 with Debian's cross compiler into build/aarch64 (library, tools, fake driver, tests), checks what
# was built, and runs tests of it under qemu-user on the fake driver, the library preloaded. Needs Debian with
# g++-aarch64-linux-gnu and qemu-user-static (scripts/setup.sh --cross installs them). A program of tests runs as a whole,
# without ctest: to start the emulator takes longer than most cases. What failed is run once more by itself, and named.
#
#   scripts/cross_test.sh [--build-only] [PROGRAM...]      default: each program of tests below
#
# The last line is "N passed, M failed": every case, and the demonstration.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

# What runs: the core, the wire format, the process object, the fake driver, the tools' parts; end to end, with the library
# preloaded, the cap by every way of allocating, groups, limits that change, the policy file, pools, look-ups of symbols, several
# runtimes, plugins, NVML; what damaged files do; and the demonstration with the two programs.
programs="e2e_test e2e_group_test wire_test process_test e2e_symbols_test e2e_nvml_test e2e_policy_test e2e_pool_growth_test
e2e_first_uses_test e2e_runtime_test e2e_deepbind_test core_test fake_cuda_test tools_test screen_test group_interleaving_test"
fuzz="fuzz_limits_replay fuzz_on_limit_replay fuzz_policy_replay fuzz_segment_replay"
# What is left out, because the emulator is not the machine.
# A process's life and groups under death: they start, kill and time hundreds of processes.
programs_left_out="e2e_life_test e2e_group_stress_test"
# Cases that need a second user, where the namespace below has one; that look up in /proc/self/stat, which the emulator makes up,
# when a process began; that need MADV_WIPEONFORK, which the emulator grants and does not do; that run this machine's own programs.
cases_left_out='*NotOursIsRefused*:ControlTest.OnlyTheOwnerAndRootMay'
cases_left_out+=':ProcFiles.OwnStartTime*:*ClosedItsDescriptors*:GroupTest.NeitherForkNorClosedDescriptors*'
cases_left_out+=':*ForkedChild.IsInertAndEndsNothing*:*ForkedChild.OfAChildIsInertToo*:Nvml.AForkedChild*'
cases_left_out+=':Programs/*:Runtimes.PythonThroughCtypesIsCapped'
# ctest's cases that are no program of tests are left out too: coverage, layers, documents, benchmarks (no processor matters to
# them), and scripts that drive wheels, shells and terminals of this machine.

build_only=0
if [ "${1:-}" = --build-only ]; then
  build_only=1
  shift
fi
[ "$(uname -m)" != aarch64 ] || die "this machine is aarch64 itself: scripts/test.sh tests it"
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$tool" >/dev/null || die "$tool was not found: scripts/setup.sh --cross installs it"
done
jobs=${GPUCAP_JOBS:-$(nproc)}
out=build/aarch64

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
  { persistently .deps/logs/aarch64-update.log apt-get $options update &&
    (cd "$state/debs" && persistently "$root/.deps/logs/aarch64-download.log" apt-get $options download $packages); } || {
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
# ctest is not used here, so no program is asked for its cases while building.
cmake -S . -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64-linux-gnu.cmake" \
  -DGPUCAP_BENCH=OFF -DGPUCAP_CUDA_INCLUDE="$cuda" -DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST
# Every program of tests is in one of the two lists above.
known=$(ninja -C "$out" -t targets all | sed -nE 's/^(\w+_test): CXX_EXECUTABLE_LINKER.*/\1/p' | sort)
listed=$(printf '%s\n' $programs $programs_left_out | sort)
[ "$known" = "$listed" ] || die "the lists of programs above and the build differ: $(diff <(echo "$listed") <(echo "$known") | grep '^[<>]' | tr '\n' ' ')"
# shellcheck disable=SC2086
cmake --build "$out" --parallel "$jobs" --target gpucap_shim gpucap gpucap-top fake_libcuda fake_libnvidia_ml train_fake \
  portability_probe $programs $fuzz
for file in libgpucap.so gpucap gpucap-top fake_cuda/libcuda.so.1 portability/portability_probe; do
  LC_ALL=C readelf -h "$out/$file" | grep -q 'Machine: *AArch64' || die "$out/$file is not for aarch64"
done
python3 tests/portability/floor.py 2.17 "$out/libgpucap.so" --program "$out/gpucap" "$out/gpucap-top"
[ "$build_only" -eq 0 ] || exit 0

# One program, in the namespace below. Prints a line of its result; the counts go to NAME.counts.
run_one() {
  local name=$1 log=$reports/$1.log started=$SECONDS status=0 passed=0 failed=0 again
  case $name in
    demonstration) bash "$reports/fake/demonstration.sh" "$out" "$out/libgpucap.so" >"$log" 2>&1 </dev/null || status=$? ;;
    fuzz_*) timeout 300 "$out/$name" >"$log" 2>&1 </dev/null || status=$? ;;
    *)
      timeout 600 "$root/$out/$name" --gtest_filter="*-$cases_left_out" >"$log" 2>&1 </dev/null || status=$?
      # Seen from outside: a program that ends early has no such lines.
      passed=$(sed -nE 's/^\[  PASSED  \] ([0-9]+) tests?\.$/\1/p' "$log" | tail -n 1)
      failed=$(sed -nE 's/^\[  FAILED  \] ([0-9]+) tests?, listed below:$/\1/p' "$log" | tail -n 1)
      passed=${passed:-0} failed=${failed:-0}
      if [ "$failed" -gt 0 ] && [ "$failed" -le 5 ]; then
        again=$(sed -nE '/listed below:$/,$s/^\[  FAILED  \] ([A-Za-z_]\S*\.\S+).*$/\1/p' "$log" | sed 's/,$//' | sort -u | paste -sd:)
        say "        $name once more: $again"
        if timeout 600 "$root/$out/$name" --gtest_filter="$again" >"$log.again" 2>&1 </dev/null; then
          passed=$((passed + failed)) failed=0 status=0
        fi
      fi
      sed -nE 's/^\[  SKIPPED \] (\S+\.\S+)$/        \1 (Skipped)/p' "$log" | sort -u
      [ "$passed" -gt 0 ] || status=1
      ;;
  esac
  case $name in demonstration | fuzz_*) [ "$status" -ne 0 ] || passed=1 ;; esac
  [ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
  echo "$passed $failed" >"$reports/$name.counts"
  if [ "$failed" -eq 0 ]; then
    say "ok      $name: $passed ($((SECONDS - started)) s)"
  else
    tail -n 60 "$log"
    say "FAILED  $name: $failed of $((passed + failed)) ($((SECONDS - started)) s)"
  fi
}

# Tests start programs, and those more programs: the kernel has to know what to do with each. In a namespace of our own it is
# told (binfmt_misc is per user namespace since Linux 6.7), and the arm64 loader and C library are laid over /usr/lib.
unshare --user --map-root-user --mount true 2>/dev/null || die "user namespaces are not allowed here: built, but not run"
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $programs $fuzz demonstration
reports=$root/$out/reports
rm -rf "$reports"
mkdir -p "$reports/fake"
cp -L "$out"/fake_cuda/lib*.so.1 "$out/portability/portability_probe" "$out/examples/train_fake" tests/portability/demonstration.sh "$reports/fake/"
export root out reports cases_left_out
export -f run_one say
run='
set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
mount -t overlay overlay -o "lowerdir=$PWD/.deps/aarch64/lib:$PWD/.deps/aarch64/usr/lib:/usr/lib" /usr/lib
jobs=$1
shift
printf "%s\0" "$@" | xargs -0 -n 1 -P "$jobs" bash -c "run_one \"\$1\"" bash'
unshare --user --map-root-user --mount bash -c "$run" bash "$jobs" "$@" || die "the emulator could not be set up, or a run ended early"
passed=0 failed=0
for name in "$@"; do
  read -r good bad <"$reports/$name.counts" || { good=0 bad=1; say "FAILED  $name: no result"; }
  passed=$((passed + good)) failed=$((failed + bad))
done
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
