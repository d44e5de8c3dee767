#!/usr/bin/env bash
# Installs each package of build/packages (scripts/package.sh) into a clean root of its own, runs a demonstration from it on the
# fake driver, removes it, and fails if anything is left. .deb and .rpm go into copies of Debian 11 (glibc 2.31; its own dpkg,
# this machine's rpm), the archives into /opt of one, the wheel into a virtual environment here. Also: lintian, what the .rpm
# asks for, the header through pkg-config and CMake, and `cmake --install`. Needs root and scripts/setup.sh --packages.
#   scripts/package_test.sh [--packages DIR] [--build DIR with the fake driver]     default: build/packages, build/release
# The last line is "N passed, M failed".
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
packages=build/packages build=build/release
while [ $# -gt 0 ]; do
  case $1 in
    --packages) packages=$2 ;;
    --build) build=$2 ;;
    *) die "unknown option '$1' (known: --packages --build)" ;;
  esac
  shift 2 || die "a folder is missing"
done
[ "$(id -u)" -eq 0 ] || die "needs root, for roots of other systems"
[ -f "$packages/SHA256SUMS" ] || die "$packages is empty: run scripts/package.sh first"
for file in portability/portability_probe examples/train_fake fake_cuda/libcuda.so.1; do
  [ -f "$build/$file" ] || die "$build/$file is missing: run scripts/build.sh first"
done
make_root bullseye

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
ok() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$scratch/out" 2>&1 </dev/null; then
    passed=$((passed + 1))
    say "ok      $name"
  else
    failed=$((failed + 1))
    say "FAILED  $name"
    tail -n 20 "$scratch/out"
  fi
}

# What every kind of package is put through: demonstration.sh PROGRAMS-FOLDER LIBRARY
mkdir -p "$scratch/fake" "$scratch/space"
cp -L "$build"/fake_cuda/lib*.so.1 "$build/portability/portability_probe" "$build/examples/train_fake" "$scratch/fake/"
cat >"$scratch/fake/demonstration.sh" <<'DEMONSTRATION'
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
DEMONSTRATION

# in_copy COMMAND: a shell in a copy of the root that is thrown away afterwards; packages in /packages, the fake machine in /fake.
in_copy() {
  unshare --mount bash -c '
    set -e
    mount --make-rprivate /
    mount -t tmpfs tmpfs "$1/space"
    mkdir "$1/space/upper" "$1/space/work" "$1/space/merged"
    export merged=$1/space/merged packages=$3
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/space/upper,workdir=$1/space/work" "$merged"
    mkdir "$merged/packages" "$merged/fake"
    mount --bind "$3" "$merged/packages"
    mount --bind "$1/fake" "$merged/fake"
    mount --rbind /proc "$merged/proc"
    mount --rbind /dev "$merged/dev"
    mount -t tmpfs tmpfs "$merged/dev/shm"
    mount -t tmpfs tmpfs "$merged/tmp"
    in_root() { chroot "$merged" /bin/bash -ec "$1"; }
    names() { (cd "$merged" && find . -xdev -name proc -prune -o \( -name "*gpucap*" -o -path "*gpucap*" \) -print | sort); }
    eval "$4"' bash "$scratch" "$root/.deps/roots/bullseye" "$(realpath "$packages")" "set -e; $1"
}

ok "deb: install, run, remove" in_copy '
  before=$(names)
  in_root "dpkg -i /packages/*.deb && test -f /usr/include/gpucap/layout.h && ldconfig -p | grep libgpucap"
  in_root "bash /fake/demonstration.sh /usr/bin /usr/\\\$LIB/libgpucap.so"
  in_root "dpkg --purge gpucap libgpucap libgpucap-dev"
  left=$(names)
  [ "$left" = "$before" ] || { echo "left behind: $left"; exit 1; }'
ok "deb: the tools ask for the library" in_copy '! in_root "dpkg -i /packages/gpucap_*.deb"'
ok "rpm: install, run, remove" in_copy '
  before=$(names)
  rpm --root "$merged" --dbpath /tmp/rpmdb --initdb
  rpm --root "$merged" --dbpath /tmp/rpmdb -i --nodeps "$packages"/*.rpm
  rpm --root "$merged" --dbpath /tmp/rpmdb -q gpucap libgpucap gpucap-devel
  in_root "bash /fake/demonstration.sh /usr/bin /usr/lib64/libgpucap.so"
  rpm --root "$merged" --dbpath /tmp/rpmdb -e --nodeps gpucap libgpucap gpucap-devel
  left=$(names)
  [ "$left" = "$before" ] || { echo "left behind: $left"; exit 1; }'
ok "archive for /opt: unpack, run, remove" in_copy '
  before=$(names)
  in_root "mkdir -p /opt/gpucap && tar -xzf /packages/gpucap-*-linux-$(uname -m).tar.gz -C /opt/gpucap"
  in_root "bash /fake/demonstration.sh /opt/gpucap/bin /opt/gpucap/\\\$LIB/libgpucap.so && rm -r /opt/gpucap"
  left=$(names)
  [ "$left" = "$before" ] || { echo "left behind: $left"; exit 1; }'
ok "archives by component: unpack, run" in_copy '
  in_root "mkdir /srv/g && for part in library tools development; do tar -xzf /packages/gpucap-*-\$part.tar.gz -C /srv/g; done"
  in_root "bash /fake/demonstration.sh /srv/g/bin /srv/g/lib64/libgpucap.so && test -f /srv/g/include/gpucap/layout.h"'

wheel_test() {
  local python venv=$scratch/venv
  python=$(pick_python) || { echo "no python with venv and pip"; return 1; }
  "$python" -m venv "$venv"
  (cd "$venv" && find . -name __pycache__ -prune -o -print | sort) >"$scratch/before"
  "$venv/bin/pip" --disable-pip-version-check install --no-index --no-compile "$packages"/gpucap-*.whl
  (. "$venv/bin/activate" && [ "$(command -v gpucap)" = "$venv/bin/gpucap" ] && [ "$(command -v gpucap-top)" = "$venv/bin/gpucap-top" ])
  bash "$scratch/fake/demonstration.sh" "$venv/bin" "$venv/lib/libgpucap.so"
  "$venv/bin/pip" --disable-pip-version-check uninstall -y gpucap
  (cd "$venv" && find . -name __pycache__ -prune -o -print | sort) >"$scratch/after"
  # pip leaves the folders that it made.
  diff "$scratch/before" "$scratch/after" | grep '^>' | cut -c3- | while read -r path; do [ -d "$venv/$path" ] || echo "left: $path"; done >"$scratch/left"
  cat "$scratch/left"
  [ ! -s "$scratch/left" ]
}
ok "wheel: install, run, remove" wheel_test
ok "wheel: its name promises what the floor test proves" test -f "$(echo "$packages"/gpucap-*-py3-none-manylinux_2_17_"$(uname -m)".whl)"

# Exceptions: a preloaded library is not linked with, so its name has no version and its symbols no file that says what they need.
# The exceptions: the library has no version in its name, for it is preloaded and never linked; ncurses is linked into
# gpucap-top, so that it runs where there is another one or none.
ok "lintian" lintian --no-cfg --fail-on error,warning --suppress-tags-from-file packaging/lintian_exceptions "$packages"/*.deb
rpm_asks() {
  rpm -qp --requires "$packages"/*.rpm | sort -u | tee "$scratch/requires"
  ! grep -vE '^(rpmlib\(|lib(c|m|dl|pthread|rt)\.so\.[0-9]|ld-linux|libgpucap = |rtld\(GNU_HASH\))' "$scratch/requires"
  ! grep -oE 'GLIBC_[0-9.]+' "$scratch/requires" | sort -uV | awk -F'[_.]' '$2 > 2 || $3 > 17' | grep .
}
ok "rpm: asks for nothing newer than glibc 2.17" rpm_asks

header_test() {
  local tree=$scratch/dev
  mkdir -p "$tree" "$scratch/user"
  for package in "$packages"/libgpucap-dev_*.deb; do dpkg-deb -x "$package" "$tree"; done
  printf '#include <gpucap/layout.h>\nint main(void) { return GPUCAP_WIRE_MAJOR == 1 ? 0 : 1; }\n' >"$scratch/user/main.c"
  export PKG_CONFIG_PATH=$tree/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tree
  # shellcheck disable=SC2046
  gcc $(pkg-config --cflags gpucap-wire) "$scratch/user/main.c" -o "$scratch/user/by_pkg_config"
  "$scratch/user/by_pkg_config"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(user C)' "find_package(gpucap $(pkg-config --modversion gpucap-wire) REQUIRED)" \
    'add_executable(user main.c)' 'target_link_libraries(user gpucap::wire)' >"$scratch/user/CMakeLists.txt"
  cmake -S "$scratch/user" -B "$scratch/user/build" -DCMAKE_PREFIX_PATH="$tree/usr"
  cmake --build "$scratch/user/build"
  "$scratch/user/build/user"
}
ok "header: pkg-config and CMake" header_test

install_test() {
  cmake --install "$build" --prefix "$scratch/prefix" --strip
  bash "$scratch/fake/demonstration.sh" "$scratch/prefix/bin" "$(find "$scratch/prefix" -name libgpucap.so)"
  xargs -d '\n' rm <"$build/install_manifest.txt"
  find "$scratch/prefix" -type f -o -type l >"$scratch/left"
  [ ! -s "$scratch/left" ]
}
ok "cmake --install: install, run, remove" install_test
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
