#!/usr/bin/env bash
# Completes a tree with lib64/libgpucap.so so that <tree>/$LIB/libgpucap.so is right for every program of a machine: the loader
# puts its own folder's name for $LIB, and says so on stderr where there is nothing. 64-bit programs find the library by either
# name; 32-bit programs find a library that holds nothing. musl takes "$LIB" for a name, and finds nothing, silently.
#   packaging/shared_box.sh TREE      needs gcc (its 32-bit assembler and linker come with it)
set -euo pipefail
tree=$1
[ -f "$tree/lib64/libgpucap.so" ] || { echo "shared_box.sh: $tree/lib64/libgpucap.so is missing" >&2; exit 1; }
triplet=$(gcc -print-multiarch)
mkdir -p "$tree/lib"
ln -sfn ../lib64 "$tree/lib/$triplet" # Debian and its kin
[ "$triplet" = x86_64-linux-gnu ] || exit 0
mkdir -p "$tree/lib/i386-linux-gnu" "$tree/lib32"
echo 'const char gpucap_caps_64_bit_programs_only = 1;' |
  gcc -m32 -shared -nostdlib -fPIC -s -Wl,-soname,libgpucap.so -Wl,-z,noexecstack -Wl,--build-id=none -x c - -o "$tree/lib/libgpucap.so"
for folder in lib/i386-linux-gnu lib32; do cp "$tree/lib/libgpucap.so" "$tree/$folder/"; done
