# How old a C library may be where the library and the tools run, whatever this machine has. gpucap_portable(<target>) links a
# target against stand-ins for the C library that know symbol versions up to the floor only (glibc_floor/make_stubs.py), together
# with the few functions that newer compilers and headers take for granted (glibc_floor/*.c). A symbol with no version that old
# fails the link. Not under the sanitizers, whose run-time libraries want the C library of this machine.
set(GPUCAP_GLIBC_FLOOR "2.17" CACHE STRING "Oldest glibc that the library and the tools run on; empty: the one of this machine")

set(gpucap_floor "")
if(GPUCAP_GLIBC_FLOOR AND NOT GPUCAP_SANITIZE AND CMAKE_SYSTEM_NAME STREQUAL Linux)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(floor_sources ${CMAKE_CURRENT_LIST_DIR}/glibc_floor)
  set(floor_folder ${CMAKE_BINARY_DIR}/glibc_floor)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${floor_sources}/make_stubs.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${floor_sources}/make_stubs.py --cc ${CMAKE_C_COMPILER} --readelf ${CMAKE_READELF}
    --floor ${GPUCAP_GLIBC_FLOOR} --compat ${floor_folder}/libgpucap_compat.a --out ${floor_folder}
    RESULT_VARIABLE floor_status OUTPUT_VARIABLE floor_output ERROR_VARIABLE floor_output)
  if(NOT floor_status EQUAL 0)
    message(FATAL_ERROR "no stand-ins for glibc ${GPUCAP_GLIBC_FLOOR} could be made; -DGPUCAP_GLIBC_FLOOR= builds for this machine's own:\n${floor_output}")
  endif()
  add_library(gpucap_compat STATIC ${floor_sources}/compat.c ${floor_sources}/start_main.c)
  target_link_libraries(gpucap_compat PRIVATE gpucap_warnings)
  # These two take the place of functions that the headers declare in their own way.
  target_compile_options(gpucap_compat PRIVATE -Wno-cast-align)
  set_target_properties(gpucap_compat PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${floor_folder})
  set(gpucap_floor ${floor_folder})
endif()
message(STATUS "Oldest glibc for the library and the tools: ${GPUCAP_GLIBC_FLOOR}")

function(gpucap_portable target)
  target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  if(gpucap_floor)
    add_dependencies(${target} gpucap_compat)
    target_link_options(${target} PRIVATE -L${gpucap_floor})
  endif()
endfunction()
