#!/usr/bin/env bash
# Builds what is handed out, into build/packages: .deb, .rpm and .tar.gz (library, tools, development), the whole as
# a .tar.gz for /opt, and a Python wheel.
# The same sources give the same bytes: SOURCE_DATE_EPOCH is that of the last commit unless it is set. Needs rpm and fakeroot
# besides what scripts/setup.sh installs (its option --packages installs them).
#   scripts/package.sh [--build DIR] [--out DIR]      default: build/package and build/packages
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
build=$root/build/package out=$root/build/packages
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(realpath -m "$2") ;;
    --out) out=$(realpath -m "$2") ;;
    *) die "unknown option '$1' (known: --build --out)" ;;
  esac
  shift 2 || die "a folder is missing"
done
for tool in rpmbuild fakeroot gzip dpkg-deb; do
  command -v "$tool" >/dev/null || die "$tool was not found: scripts/setup.sh --packages installs it"
done
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1700000000); fi
export SOURCE_DATE_EPOCH
# A cache may hold objects that were made in another folder, whose name is then in what the build's identity is taken from.
export CCACHE_DISABLE=1
umask 022

machine=$(uname -m)
# Paths of this machine do not get into the files. GCC takes the last map that fits: the build folder may lie in the sources.
map="-ffile-prefix-map=$root=. -ffile-prefix-map=$build=build"
triplet=$("${CC:-gcc}" -print-multiarch)
configure() { # LIBDIR: only what is installed where changes between the kinds, so nothing is built twice
  quietly build/logs/package-configure.log cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGPUCAP_TESTS=OFF \
    -DGPUCAP_BENCH=OFF -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="$1" \
    -DCMAKE_C_FLAGS="$map" -DCMAKE_CXX_FLAGS="$map" -DCMAKE_ASM_FLAGS="$map" ${GPUCAP_CUDA_INCLUDE:+-DGPUCAP_CUDA_INCLUDE="$GPUCAP_CUDA_INCLUDE"}
}
pack() { # KIND
  rm -rf "$build/_CPack_Packages"
  quietly "build/logs/package-$1.log" fakeroot cpack --config "$build/CPackConfig.cmake" -G "$1" -B "$build/packed"
}

rm -rf "$out" "$build/packed"
mkdir -p "$out"
configure "lib/$triplet"
quietly build/logs/package-build.log cmake --build "$build" --parallel "${GPUCAP_JOBS:-$(nproc)}"
# What is installed is as old as the sources, whenever it was built.
find "$build" -maxdepth 2 -type f \( -name 'gpucap*' -o -name 'libgpucap.so' \) -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
pack DEB
configure lib64
pack RPM
pack TGZ
find "$build/packed" -maxdepth 1 -type f \( -name '*.deb' -o -name '*.rpm' -o -name '*.tar.gz' \) -exec mv {} "$out" \;

tree=$build/tree
rm -rf "$tree"
quietly build/logs/package-tree.log cmake --install "$build" --prefix "$tree" --strip
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
python3 packaging/wheel.py --tree "$tree" --version "$version" --platform "manylinux_2_17_$machine" --out "$out" --readme README.md \
  --license LICENSE >/dev/null
# The whole tree for /opt, where programs of every kind meet it.
packaging/shared_box.sh "$tree"
tar -C "$tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - . |
  gzip -9n >"$out/gpucap-$version-linux-$machine.tar.gz"
(cd "$out" && sha256sum -- *.deb *.rpm *.tar.gz *.whl >SHA256SUMS)
say "in ${out#"$root"/}:"
ls -1 "$out"
