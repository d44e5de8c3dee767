#!/usr/bin/env bash
# Everything that can be checked without a GPU: formatting, layers, the release build with all tests, the packages and other
# user spaces, aarch64 under the emulator, the sanitizers, Clang, and the headers of the other CUDA major version. Goes on after a
# failure, so that one run tells all of it. The last line is "N passed, M failed": each test that ctest ran, each case that
# another script counted, and each other check counts as one. Other user spaces need root, and roots of Debian that are fetched.
#
#   scripts/test.sh [--quick]      --quick: formatting, layers, release build and its tests only
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root" || exit 1

quick=0
case "${1:-}" in
  "") ;;
  --quick) quick=1 ;;
  *) die "unknown option '$1' (known: --quick)" ;;
esac

logs=build/logs
passed=0 failed=0
mkdir -p "$logs"
jobs=$(nproc)

# check NAME COMMAND...: one check, timed; its output is kept, and shown if it fails.
check() {
  local name=$1 started=$SECONDS
  shift
  if quietly "$logs/${name// /-}.log" "$@"; then
    passed=$((passed + 1))
    say "ok      $name ($((SECONDS - started)) s)"
  else
    failed=$((failed + 1))
    say "FAILED  $name ($((SECONDS - started)) s)"
    return 1
  fi
}

# run_tests NAME FOLDER [ctest options]: adds ctest's own counts. A run without a summary, or of no test, is one failure.
run_tests() {
  local name=$1 folder=$2 started=$SECONDS log summary bad total
  shift 2
  log="$logs/${name// /-}.log"
  # Stress and screens depend on the moment on a busy machine: a failed test is run once more, and named below.
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$jobs" --timeout 300 --repeat until-pass:2 "$@" \
    >"$log" 2>&1 </dev/null
  local status=$?
  summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1)
  if [ -z "$summary" ]; then
    failed=$((failed + 1))
    tail -n 40 "$log"
    say "FAILED  $name: ctest gave no summary"
    return 1
  fi
  bad=$(sed -E 's/.*passed, ([0-9]+) tests? failed.*/\1/' <<<"$summary")
  total=$(sed -E 's/.*out of ([0-9]+).*/\1/' <<<"$summary")
  [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1 total=$((total + 1))
  passed=$((passed + total - bad))
  failed=$((failed + bad))
  grep -E '\*\*\*(Skipped|Not Run|Failed|Timeout)' "$log" | sed -E 's/ \.{3,}/ /; s/^/        /' | sort -u
  if [ "$bad" -gt 0 ]; then
    grep -E '\*\*\*|^(.*: )?(FAIL|ERROR|WARNING: (Address|Thread)Sanitizer)|Failure$|\[  FAILED  \]' "$log" | head -n 60
    say "--- the whole output is in $log; its end:"
    tail -n 120 "$log"
    say "FAILED  $name: $bad of $total tests ($((SECONDS - started)) s)"
    return 1
  fi
  say "ok      $name: $total tests ($((SECONDS - started)) s)"
}

# counted NAME COMMAND...: a script that runs tests of its own and ends with "N passed, M failed": adds these. One that ends
# without, or of no test, is one failure.
counted() {
  local name=$1 started=$SECONDS log good bad status=0
  shift
  log="$logs/${name// /-}.log"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  read -r good bad < <(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p')
  good=${good:-0} bad=${bad:-0}
  [ "$bad" -gt 0 ] || [ "$status" -eq 0 -a "$good" -gt 0 ] || bad=1
  passed=$((passed + good))
  failed=$((failed + bad))
  grep -E '^FAILED|\(Skipped\)$| once more: ' "$log" | sed -E 's/^ *(FAILED)? */        /' | sort -u
  if [ "$bad" -gt 0 ]; then
    tail -n 60 "$log"
    say "--- the whole output is in $log"
    say "FAILED  $name: $bad of $((good + bad)) ($((SECONDS - started)) s)"
    return 1
  fi
  say "ok      $name: $good tests ($((SECONDS - started)) s)"
}

check_format() {
  local tool version
  tool=$(command -v clang-format-14 || command -v clang-format) || { say "clang-format was not found"; return 1; }
  version=$("$tool" --version | sed -E 's/.*version ([0-9]+).*/\1/')
  [ "$version" = 14 ] || { say "the tree is formatted by clang-format 14; $tool is $version"; return 1; }
  # Tables of macros (*.inc) are laid out by hand.
  local bad
  git ls-files -co --exclude-standard -z -- '*.h' '*.hpp' '*.c' '*.cpp' '*.cu' >"$logs/sources" || return 1
  bad=$(while IFS= read -r -d '' file; do
    [ ! -f "$file" ] || "$tool" --style=file --dry-run -Werror "$file" >/dev/null 2>&1 || say "$file"
  done <"$logs/sources")
  [ -z "$bad" ] && return 0
  say "not formatted (clang-format-14 -i does it):"
  say "$bad"
  return 1
}

build_in() { # FOLDER [cmake options]
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@" && cmake --build "$folder" --parallel "$jobs"
}

# The CUDA major version whose headers a build's log says it used.
headers_of() {
  local folder
  folder=$(sed -n 's/^-- CUDA headers: //p' "$1" | tail -n 1)
  awk '$1 == "#define" && $2 == "CUDA_VERSION" { print int($3 / 1000); exit }' "$folder/cuda.h" 2>/dev/null
}

finish() {
  say "total time: $SECONDS s"
  say "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

if [ "$quick" -eq 1 ]; then more=""; else more="--cross --packages"; fi
# shellcheck disable=SC2086
check "setup" scripts/setup.sh --dev --both-headers --clients $more || finish
check "formatting" check_format
check "layer check can fail" python3 scripts/check_layers.py --self-test
check "layers" python3 scripts/check_layers.py
if check "release build" scripts/build.sh release; then
  run_tests "release tests" build/release
fi
[ "$quick" -eq 1 ] && finish

if check "packages" scripts/package.sh; then counted "packages installed" scripts/package_test.sh; fi
counted "other user spaces" scripts/portability_test.sh
counted "aarch64" scripts/cross_test.sh

# Preloading into a sanitized program is not what users do: the end-to-end tests ran on the release build.
for preset in asan tsan; do
  if check "$preset build" scripts/build.sh "$preset"; then
    run_tests "$preset tests" "build/$preset" --label-exclude e2e
  fi
done

check "clang build" build_in build/clang -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++

main_headers=$(headers_of "$logs/release-build.log")
for major in 12 13; do
  [ "$major" = "$main_headers" ] && continue
  check "build with CUDA $major headers" build_in "build/cuda$major" -DGPUCAP_TESTS=OFF -DGPUCAP_BENCH=OFF \
    -DGPUCAP_CUDA_INCLUDE="$root/.deps/cuda$major/include"
done
finish
