# CMake toolchain file: builds for aarch64 (Grace Hopper, Jetson) on another machine, with Debian's cross compiler and, from
# .deps/aarch64, Debian's arm64 packages of the libraries that gpucap uses. scripts/cross_test.sh fetches those and builds so.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The tests are asked for their names while building; to run them takes more (see cross_test.sh). The same C library in both.
get_filename_component(arm64_root ${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64 ABSOLUTE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${arm64_root})
