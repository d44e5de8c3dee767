# What every target shares. gpucap_layer() makes one static library a layer. Includes are written from the repository's
# root ("wire/layout.h"); scripts/check_layers.py, run as a test, refuses an include that goes up.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

add_library(gpucap_warnings INTERFACE)
target_compile_options(gpucap_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wcast-align -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)

add_library(gpucap_sanitizers INTERFACE)
if(GPUCAP_SANITIZE)
  target_compile_options(gpucap_sanitizers INTERFACE -fsanitize=${GPUCAP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(gpucap_sanitizers INTERFACE -fsanitize=${GPUCAP_SANITIZE})
  # GCC's thread sanitizer does not model fences and says so; the fences here order atomics, which it does see.
  if(GPUCAP_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(gpucap_sanitizers INTERFACE -Wno-tsan)
  endif()
  # Objects made in the guest carry no type information, and whoever holds one would be told that it is no object.
  if(GPUCAP_SANITIZE MATCHES undefined)
    target_compile_options(gpucap_sanitizers INTERFACE -fno-sanitize=vptr)
  endif()
endif()

# Code that lives inside someone else's program: no exceptions, no RTTI, nothing exported, no unique symbols.
add_library(gpucap_guest INTERFACE)
target_compile_options(gpucap_guest INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  -fvisibility=hidden -ffunction-sections -fdata-sections -fstack-protector)
target_compile_options(gpucap_guest INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>
  $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
# fmt without std::locale and without exceptions, spdlog without a thread-local of its own: each would bring a part of libstdc++
# or a call of the loader into the library.
target_compile_definitions(gpucap_guest INTERFACE FMT_STATIC_THOUSANDS_SEPARATOR=0x2c SPDLOG_NO_TLS)
target_compile_options(gpucap_guest INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-DFMT_THROW(x)=__builtin_abort()>")
# Thread-locals are words at a fixed place, and none has a constructor: no look-up at load, no test at use.
target_compile_options(gpucap_guest INTERFACE -ftls-model=initial-exec
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-extern-tls-init>)

function(gpucap_layer name)
  cmake_parse_arguments(ARG "GUEST" "" "SOURCES;BELOW" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_BELOW} PRIVATE gpucap_warnings gpucap_sanitizers)
  if(ARG_GUEST)
    target_link_libraries(${name} PRIVATE gpucap_guest)
  endif()
endfunction()
