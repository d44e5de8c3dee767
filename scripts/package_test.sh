#!/usr/bin/env bash
# Installs each package of build/packages (scripts/package.sh) into a clean root of its own, runs a demonstration from it on the
# fake driver, removes it, and fails if anything is left. .deb and .rpm go into copies of Debian 11 (glibc 2.31; its own dpkg,
# this machine's rpm), the archives into /opt of one, the wheel into a virtual environment here. Also: lintian, what the .rpm
# asks for, the floor of every file that is packed, the version that all state, a second build of the packages elsewhere, the
# header through pkg-config and CMake, and `cmake --install`. Needs scripts/setup.sh --packages; without root, what goes into
# another root is told as failed.
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
[ -f "$packages/SHA256SUMS" ] || die "$packages is empty: run scripts/package.sh first"
for file in portability/portability_probe examples/train_fake fake_cuda/libcuda.so.1; do
  [ -f "$build/$file" ] || die "$build/$file is missing: run scripts/build.sh first"
done
[ "$(id -u)" -ne 0 ] || make_root bullseye

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
ok() { # NAME COMMAND...: a function ends at its first line that fails, as a script does. Not in a condition: there it would go on.
  local name=$1 status
  shift
  set +e
  (set -e; "$@") >"$scratch/out" 2>&1 </dev/null
  status=$?
  set -e
  if [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    say "ok      $name"
  else
    failed=$((failed + 1))
    say "FAILED  $name"
    tail -n 20 "$scratch/out"
  fi
}

# What every kind of package is put through: demonstration.sh FOLDER-OF-PROGRAMS LIBRARY
mkdir -p "$scratch/fake" "$scratch/space"
cp -L "$build"/fake_cuda/lib*.so.1 "$build/portability/portability_probe" "$build/examples/train_fake" tests/portability/demonstration.sh \
  "$scratch/fake/"

# in_copy COMMAND: a shell in a copy of the root that is thrown away afterwards; packages in /packages, the fake machine in /fake.
# same_as_before fails if anything is there that was not when all_files was kept in $before, but what the package manager writes
# about itself (and the loader's cache).
in_copy() {
  [ "$(id -u)" -eq 0 ] || { echo "needs root, for a root of another system"; return 1; }
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
    all_files() { (cd "$merged" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./etc/ld.so.cache \
      -o -path "./var/cache/ldconfig*" \) -prune -o -print | sort); }
    same_as_before() { local left; left=$(comm -13 <(echo "$before") <(all_files)); [ -z "$left" ] || { echo "left behind: $left"; return 1; }; }
    eval "$4"' bash "$scratch" "$root/.deps/roots/bullseye" "$(realpath "$packages")" "set -e; $1"
}

ok "deb: install, run, remove" in_copy '
  before=$(all_files)
  in_root "dpkg -i /packages/*.deb && test -f /usr/include/gpucap/layout.h && ldconfig -p | grep libgpucap"
  in_root "bash /fake/demonstration.sh /usr/bin /usr/\\\$LIB/libgpucap.so"
  in_root "dpkg --purge gpucap libgpucap libgpucap-dev"
  same_as_before'
ok "deb: the tools ask for the library" in_copy '! in_root "dpkg -i /packages/gpucap_*.deb"'
ok "rpm: install, run, remove" in_copy '
  mkdir -p "$merged"/usr/share/{licenses,pkgconfig} # which a system of that kind has
  before=$(all_files)
  rpm --root "$merged" --dbpath /tmp/rpmdb --initdb
  rpm --root "$merged" --dbpath /tmp/rpmdb -i --nodeps "$packages"/*.rpm
  rpm --root "$merged" --dbpath /tmp/rpmdb -q gpucap libgpucap gpucap-devel
  in_root "bash /fake/demonstration.sh /usr/bin /usr/lib64/libgpucap.so"
  rpm --root "$merged" --dbpath /tmp/rpmdb -e --nodeps gpucap libgpucap gpucap-devel
  same_as_before'
ok "archive for /opt: unpack, run, remove" in_copy '
  before=$(all_files)
  in_root "mkdir -p /opt/gpucap && tar -xzf /packages/gpucap-*-linux-$(uname -m).tar.gz -C /opt/gpucap"
  in_root "bash /fake/demonstration.sh /opt/gpucap/bin /opt/gpucap/\\\$LIB/libgpucap.so && rm -r /opt/gpucap"
  same_as_before'
ok "archives by component: unpack, run, remove" in_copy '
  before=$(all_files)
  in_root "mkdir /srv/g && for part in library tools development; do tar -xzf /packages/gpucap-*-\$part.tar.gz -C /srv/g; done"
  in_root "bash /fake/demonstration.sh /srv/g/bin /srv/g/lib64/libgpucap.so && test -f /srv/g/include/gpucap/layout.h"
  in_root "rm -r /srv/g"
  same_as_before'

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
  comm -13 "$scratch/before" "$scratch/after" | while read -r path; do [ -d "$venv/$path" ] || echo "left: $path"; done >"$scratch/left"
  cat "$scratch/left"
  [ ! -s "$scratch/left" ]
}
ok "wheel: install, run, remove" wheel_test
ok "wheel: its name promises what the floor test proves" test -f "$(echo "$packages"/gpucap-*-py3-none-manylinux_2_17_"$(uname -m)".whl)"

# The exceptions: the library has no version in its name, for it is preloaded and never linked; ncurses is linked into
# gpucap-top, so that it runs where there is another one or none.
ok "lintian" lintian --no-cfg --fail-on error,warning --suppress-tags-from-file packaging/lintian_exceptions "$packages"/*.deb
# Besides: rpm itself, the library for the tools, and what rpm adds to gpucap-devel for its pkg-config file.
rpm_asks() {
  rpm -qp --requires "$packages"/*.rpm | sort -u | tee "$scratch/requires"
  grep -q GLIBC_ "$scratch/requires"
  if grep -vE '^(rpmlib\(|lib(c|m|dl|pthread|rt)\.so\.[0-9]|ld-linux|libgpucap = |rtld\(GNU_HASH\)|/usr/bin/pkg-config$)' "$scratch/requires"; then return 1; fi
  ! grep -oE 'GLIBC_[0-9.]+' "$scratch/requires" | sort -uV | awk -F'[_.]' '$2 > 2 || $3 > 17' | grep .
}
ok "rpm: asks for nothing newer than glibc 2.17" rpm_asks

# What is packed was stripped, and built by other options than what ctest looks at.
unpack_all() {
  local file folder
  for file in "$packages"/*.deb "$packages"/*.rpm "$packages"/*.tar.gz "$packages"/*.whl; do
    folder=$scratch/unpacked/$(basename "$file")
    mkdir -p "$folder"
    case $file in
      *.deb) dpkg-deb -x "$file" "$folder" ;;
      *.rpm) rpm2archive - <"$file" | tar -xz -C "$folder" ;;
      *.tar.gz) tar -xzf "$file" -C "$folder" ;;
      *.whl) python3 -m zipfile -e "$file" "$folder" ;;
    esac
  done
}
floor_test() {
  local libraries programs
  unpack_all
  mapfile -t libraries < <(find "$scratch/unpacked" -type f -name libgpucap.so -exec sh -c 'readelf -h "$1" | grep -q ELF64' sh {} \; -print)
  mapfile -t programs < <(find "$scratch/unpacked" -type f \( -path '*/bin/gpucap*' -o -path '*/scripts/gpucap*' \))
  # .deb, .rpm, the archive of the library or of the tools, the archive for /opt, the wheel
  [ "${#libraries[@]}" -eq 5 ] && [ "${#programs[@]}" -eq 10 ] || { echo "${libraries[@]} ${programs[@]}"; return 1; }
  python3 tests/portability/floor.py 2.17 "${libraries[@]}" --program "${programs[@]}"
  for file in "${libraries[@]}"; do python3 tests/coverage/binary.py "$file" "$build/fake_cuda/libcuda.so.1"; done
  if grep -l GPUCAP_TEST "${libraries[@]}"; then echo "a test's variable is read"; return 1; fi
}
ok "every packed file has the floor, and exports the table" floor_test

version=$(sed -nE 's/^project\(gpucap VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
version_test() {
  local file
  [ -n "$version" ] && grep -q "^## $version\$" CHANGELOG.md || { echo "CHANGELOG.md does not tell of $version"; return 1; }
  for file in "$packages"/*.deb "$packages"/*.rpm "$packages"/*.tar.gz "$packages"/*.whl; do
    case ${file##*/} in *[-_]"$version"[-_]*) ;; *) echo "$file is not of $version"; return 1 ;; esac
  done
  for file in "$packages"/*.deb; do [ "$(dpkg-deb -f "$file" Version)" = "$version" ] || { echo "$file"; return 1; }; done
  for file in "$packages"/*.rpm; do [ "$(rpm -qp --qf '%{version}' "$file")" = "$version" ] || { echo "$file"; return 1; }; done
  [ "$("$build/gpucap" version)" = "gpucap $version" ]
  grep -oE 'gpucap[-_a-z]*[-_][0-9]+\.[0-9]+\.[0-9]+' docs/install.md | grep -vE "[-_]${version//./\\.}\$" && return 1
  [ "$(uname -m)" = x86_64 ] || return 0
  grep -oE '\b(lib)?gpucap[-_][0-9][^ ]*\.(deb|rpm|whl|tar\.gz)' docs/install.md | sort -u | while read -r file; do
    [ -f "$packages/$file" ] || { echo "docs/install.md names $file"; return 1; }
  done
}
ok "one version, that of CMakeLists.txt; docs/install.md names packages that there are" version_test

header_test() {
  local tree=$scratch/dev
  mkdir -p "$tree" "$scratch/user"
  for package in "$packages"/libgpucap-dev_*.deb; do dpkg-deb -x "$package" "$tree"; done
  printf '#include <gpucap/layout.h>\nint main(void) { return GPUCAP_WIRE_MAJOR >= 1 && sizeof(struct gpucap_event) == 64 ? 0 : 1; }\n' >"$scratch/user/main.c"
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
# The same sources in another folder, of another age, in another time zone, without git.
again_test() {
  local copy=$scratch/elsewhere/gpucap moment
  moment=$(stat -c %Y "$scratch/unpacked/gpucap-$version-linux-$(uname -m).tar.gz/bin/gpucap") # SOURCE_DATE_EPOCH of the first
  mkdir -p "$copy"
  git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$copy"
  ln -s "$root/.deps" "$copy/.deps"
  find "$copy" -exec touch -h -d '2020-02-02 02:02:02' {} +
  env TZ=Pacific/Auckland LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="$moment" \
    "$copy/scripts/package.sh" --build "$scratch/elsewhere/build" --out "$scratch/elsewhere/out"
  diff "$packages/SHA256SUMS" "$scratch/elsewhere/out/SHA256SUMS"
}
ok "a second build in another folder gives the same bytes" again_test

say "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
