# What keeps libgpucap.so cheap for programs that never use CUDA: at every start they pay for its files, mappings, relocations
# and touched pages. tests/portability/start.py holds it to that.
if(NOT TARGET gpucap_shim)
  return()
endif()
set_property(TARGET gpucap_shim APPEND PROPERTY SOURCES self_contained.cpp)
# What it defines the compiler knows by name; it must not be optimised together with its callers.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/shim/self_contained.cpp TARGET_DIRECTORY gpucap_shim
  PROPERTIES COMPILE_OPTIONS -fno-lto)
# Two mappings of the file instead of four. And without the compiler's start files: they are for static constructors and
# destructors of C++ objects, of which the library has none, and cost a page, four look-ups and two calls.
target_link_options(gpucap_shim PRIVATE -Wl,-z,noseparate-code -nostartfiles)
