#!/usr/bin/env bash
# Takes build/release to other user spaces and runs it there on the fake driver: Debian releases with an older and a newer C
# library than this one's (made by debootstrap in .deps/roots, once), and beside them 32-bit and musl programs. In each: a cap by
# LD_PRELOAD and by /etc/ld.so.preload through /opt/gpucap/$LIB, threads, dlsym, the log in a file, the launcher, the reader.
# With "+lib64" a root is laid out as Red Hat's kin are: its loaders put lib64 and lib for $LIB, and /opt/gpucap has nothing else.
# Needs root (roots and mounts, all in a mount namespace of its own) and what scripts/setup.sh --packages installs.
#
#   scripts/portability_test.sh [--build DIR] [SUITE[+lib64]...]      default: build/release; bullseye bullseye+lib64 trixie
#
# The last line is "N passed, M failed".
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
build=build/release
if [ "${1:-}" = --build ]; then
  build=$2
  shift 2
fi
[ $# -gt 0 ] || set -- bullseye bullseye+lib64 trixie
[ "$(id -u)" -eq 0 ] || die "needs root, for roots of other systems"
for tool in debootstrap musl-gcc; do
  command -v "$tool" >/dev/null || die "$tool was not found: scripts/setup.sh --packages installs it"
done
for file in libgpucap.so gpucap gpucap-top portability/portability_probe fake_cuda/libcuda.so.1 examples/train_fake; do
  [ -f "$build/$file" ] || die "$build/$file is missing: run scripts/build.sh first"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The layout that the archive for /opt has, and the programs of the test.
tree=$scratch/opt/gpucap
mkdir -p "$tree"/{bin,lib64,fake,test}
cp "$build/libgpucap.so" "$tree/lib64/"
cp "$build/gpucap" "$build/gpucap-top" "$tree/bin/"
packaging/shared_box.sh "$tree"
cp -L "$build"/fake_cuda/lib*.so.1 "$tree/fake/"
cp "$build/portability/portability_probe" "$build/examples/train_fake" "$tree/test/"
gcc -O1 tests/portability/no_cuda.c -L "$build/glibc_floor" -o "$tree/test/no_cuda"
musl-gcc -O1 tests/portability/no_cuda.c -o "$tree/test/no_cuda_musl"
gcc -m32 -O1 tests/portability/no_cuda.c -o "$tree/test/no_cuda_32" || die "no 32-bit program can be built here"

cat >"$tree/test/inside.sh" <<'INSIDE'
# Runs in the other root. Each line that it prints begins with ok or FAILED. $1: which folders the loaders put for $LIB.
cd /opt/gpucap
wide=lib/x86_64-linux-gnu narrow=lib32
if [ "$1" = lib64 ]; then
  # The folder's name is a string in the loader; one of the same length that means another folder takes its place.
  wide=lib64 narrow=lib
  rm -r lib/x86_64-linux-gnu lib/i386-linux-gnu lib32
  perl -0777 -pi -e 's!\0lib/x86_64-linux-gnu\0!\0lib64/./././././././\0!g' "$(realpath /lib64/ld-linux-x86-64.so.2)"
  perl -0777 -pi -e 's!\0lib32\0!\0lib/.\0!g' /lib/ld-linux.so.2
  chmod 755 /lib/ld-linux.so.2
fi
export GPUCAP_DIR=/tmp/segments FAKE_CUDA_STATE=/tmp/machine LD_LIBRARY_PATH=/opt/gpucap/fake
fine() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >/tmp/out 2>/tmp/err; then echo "ok $name: $(tail -n 1 /tmp/out)"; else
    echo "FAILED $name"
    tail -n 5 /tmp/out /tmp/err
  fi
}
silent() { # NAME COMMAND...: says hello and nothing else
  local name=$1
  shift
  fine "$name" sh -c '"$@" >/tmp/said 2>&1; cat /tmp/said; [ "$(cat /tmp/said)" = hello ]' sh "$@"
}
preload=/opt/gpucap/'$LIB'/libgpucap.so
# What ldd shows: the file by the name that the loader made of $LIB.
loads() { env LD_PRELOAD="$preload" LD_TRACE_LOADED_OBJECTS=1 "$2" | tee /dev/stderr | grep -E "(=> |^\s*)/opt/gpucap/$1[/.]*/libgpucap.so "; }
fine "64-bit programs look in $wide" loads "$wide" test/no_cuda
fine "32-bit programs look in $narrow" loads "$narrow" test/no_cuda_32
fine "without the library the probe is not capped (control)" sh -c '! test/portability_probe 2048'
fine "cap by LD_PRELOAD, threads, dlsym" env LD_PRELOAD="$preload" GPUCAP_LIMIT=2G GPUCAP_LOG=debug GPUCAP_LOG_FILE=/tmp/log.%p test/portability_probe 2048
fine "the log tells of refusals" sh -c 'grep -h refused /tmp/log.*'
fine "launcher" bin/gpucap run --limit 4G -- test/train_fake 2
cp /tmp/out /tmp/training
fine "it was refused and recovered" grep recovered /tmp/training
fine "reader" sh -c 'bin/gpucap-top events | grep -i refuse'
silent "a program without CUDA" env LD_PRELOAD="$preload" test/no_cuda
silent "a 32-bit program" env LD_PRELOAD="$preload" test/no_cuda_32
silent "a musl program" env LD_PRELOAD="$preload" test/no_cuda_musl
echo "$preload" >/etc/ld.so.preload
fine "cap by ld.so.preload" env GPUCAP_LIMIT=2G GPUCAP_LOG=off test/portability_probe 2048
silent "ld.so.preload: a program without CUDA" test/no_cuda
silent "ld.so.preload: a 32-bit program" test/no_cuda_32
silent "ld.so.preload: a musl program" test/no_cuda_musl
# A program that is set-user-id and started by someone else: capped, and it writes no file that its caller named.
cp fake/lib*.so.1 /lib/x86_64-linux-gnu/
install -m 4755 test/portability_probe /opt/set_uid_probe
fine "ld.so.preload: a set-user-id program is capped" setpriv --reuid=65534 --regid=65534 --clear-groups env FAKE_CUDA_STATE=/tmp/other GPUCAP_LIMIT=2G \
  GPUCAP_LOG=debug GPUCAP_LOG_FILE=/tmp/others_log GPUCAP_DIR=/tmp/others_folder /opt/set_uid_probe 2048
install -g 42 -m 2755 test/portability_probe /opt/set_gid_probe
fine "ld.so.preload: a set-group-id program is capped" setpriv --reuid=65534 --regid=65534 --clear-groups env FAKE_CUDA_STATE=/tmp/third GPUCAP_LIMIT=2G \
  GPUCAP_LOG=debug GPUCAP_LOG_FILE=/tmp/others_log GPUCAP_DIR=/tmp/others_folder /opt/set_gid_probe 2048
fine "ld.so.preload: ... and neither writes a file that its caller named" sh -c 'test ! -e /tmp/others_log && test ! -e /tmp/others_folder'
fine "ld.so.preload: ... which an ordinary program does (control)" sh -c 'GPUCAP_LIMIT=2G GPUCAP_LOG=debug GPUCAP_LOG_FILE=/tmp/others_log \
  GPUCAP_DIR=/tmp/others_folder test/portability_probe 2048 && test -s /tmp/others_log && test -d /tmp/others_folder'
rm /etc/ld.so.preload
# As docs/install.md tells: the loader of such a program does not take a path from whoever starts it. The probe ends with 1.
for kind in uid gid; do
  fine "LD_PRELOAD: a set-$kind program is not capped, and writes nothing" setpriv --reuid=65534 --regid=65534 --clear-groups \
    env FAKE_CUDA_STATE=/tmp/fourth.$kind GPUCAP_LIMIT=2G GPUCAP_DIR=/tmp/fourth_folder LD_PRELOAD="$preload" \
    sh -c '/opt/set_'$kind'_probe 2048; [ $? -eq 1 ] && [ ! -e /tmp/fourth_folder ]'
done
mv "$narrow/libgpucap.so" away
fine "without its stand-in the 32-bit loader complains (control)" sh -c "LD_PRELOAD='$preload' test/no_cuda_32 2>&1 | grep 'cannot be preloaded'"
INSIDE

enter='
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1/space"
mkdir "$1/space/upper" "$1/space/work" "$1/space/merged"
merged=$1/space/merged
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/space/upper,workdir=$1/space/work" "$merged"
mkdir -p "$merged/opt" "$merged/lib32"
cp -a "$1/opt/gpucap" "$merged/opt/"
# What the 32-bit and the musl program need of their own.
cp -L /lib32/libc.so.6 "$merged/lib32/"
cp -L /lib/ld-linux.so.2 "$merged/lib/ld-linux.so.2"
cp -L /lib/ld-musl-x86_64.so.1 "$merged/lib/ld-musl-x86_64.so.1"
mount --rbind /proc "$merged/proc"
mount --rbind /dev "$merged/dev"
mount -t tmpfs tmpfs "$merged/dev/shm"
mount -t tmpfs tmpfs "$merged/tmp"
exec chroot "$merged" /bin/bash /opt/gpucap/test/inside.sh "$3"'

passed=0 failed=0
for suite in "$@"; do
  base=${suite%+lib64} layout=multiarch
  [ "$suite" = "$base" ] || layout=lib64
  make_root "$base"
  say "== $suite"
  mkdir -p "$scratch/space"
  unshare --mount bash -c "$enter" bash "$scratch" "$root/.deps/roots/$base" "$layout" >"$scratch/report" 2>&1 || echo "FAILED $suite: ended early" >>"$scratch/report"
  cat "$scratch/report"
  passed=$((passed + $(grep -c '^ok ' "$scratch/report" || true)))
  failed=$((failed + $(grep -c '^FAILED ' "$scratch/report" || true)))
done
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
