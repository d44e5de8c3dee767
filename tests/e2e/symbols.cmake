# Look-ups of symbols, several runtimes in one process, real clients; and the coverage of the hook table.
add_subdirectory(${CMAKE_SOURCE_DIR}/tests/coverage ${CMAKE_BINARY_DIR}/tests/coverage)
set(symbols_folder ${CMAKE_BINARY_DIR}/e2e)

function(e2e_part target) # a program or a library of the tests, beside the others
  target_link_libraries(${target} PRIVATE gpucap_warnings ${CMAKE_DL_LIBS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${symbols_folder} LIBRARY_OUTPUT_DIRECTORY ${symbols_folder}
    BUILD_WITH_INSTALL_RPATH ON)
endfunction()

add_executable(symbols_probe symbols_probe.cpp)
add_executable(symbols_driver_probe symbols_probe.cpp)
add_library(symbols_plugin MODULE symbols_plugin.cpp)
add_library(symbols_driver_plugin MODULE symbols_plugin.cpp)
add_library(symbols_interposer MODULE symbols_interposer.cpp)
set(fake_runtime_sources ../fake_cuda/runtime.cpp ../fake_cuda/runtime_driver.cpp ../fake_cuda/runtime_memory.cpp)
add_library(symbols_static_plugin MODULE symbols_static_plugin.cpp ${fake_runtime_sources})
foreach(target symbols_probe symbols_driver_probe symbols_plugin symbols_driver_plugin symbols_interposer symbols_static_plugin)
  e2e_part(${target})
endforeach()
foreach(target symbols_driver_probe symbols_driver_plugin)
  target_link_options(${target} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(${target} PRIVATE fake_libcuda gpucap_cuda_headers)
endforeach()
target_compile_definitions(symbols_driver_plugin PRIVATE WITH_DRIVER)
target_link_libraries(symbols_static_plugin PRIVATE gpucap_cuda_headers)
target_compile_definitions(symbols_static_plugin PRIVATE FAKE_CUDART_VERSION=12090)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/static_plugin.map CONTENT "{ global: plugin_take; local: *; };\n")
target_link_options(symbols_static_plugin PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/static_plugin.map)

add_executable(e2e_symbols_test symbols_test.cpp)
target_link_libraries(e2e_symbols_test PRIVATE gpucap_wire_reader fake_truth_file gpucap_warnings GTest::gtest_main)
target_compile_definitions(e2e_symbols_test PRIVATE ${e2e_definitions}
  PLAIN_PROBE="$<TARGET_FILE:symbols_probe>" DRIVER_PROBE="$<TARGET_FILE:symbols_driver_probe>"
  PLAIN_PLUGIN="$<TARGET_FILE:symbols_plugin>" DRIVER_PLUGIN="$<TARGET_FILE:symbols_driver_plugin>"
  STATIC_PLUGIN="$<TARGET_FILE:symbols_static_plugin>" INTERPOSER="$<TARGET_FILE:symbols_interposer>"
  PROC_TABLE="${CMAKE_SOURCE_DIR}/tests/fake_cuda/proc_table.txt")
add_dependencies(e2e_symbols_test gpucap_shim e2e_client fake_libcuda_old fake_libnvidia_ml fake_libcudart_12 symbols_probe
  symbols_driver_probe symbols_plugin symbols_driver_plugin symbols_static_plugin symbols_interposer)
gtest_discover_tests(e2e_symbols_test TEST_PREFIX "e2e." PROPERTIES LABELS e2e TIMEOUT 120)

# Programs and libraries linked with either runtime.
foreach(major 12 13)
  add_executable(runtime_client_${major} runtime_client.cpp)
  add_library(runtime_plugin_${major} MODULE runtime_plugin.cpp)
  foreach(target runtime_client_${major} runtime_plugin_${major})
    e2e_part(${target})
    target_link_libraries(${target} PRIVATE fake_libcudart_${major})
  endforeach()
endforeach()
add_executable(e2e_runtime_test runtime_test.cpp)
target_link_libraries(e2e_runtime_test PRIVATE gpucap_wire_reader fake_truth_file gpucap_warnings GTest::gtest_main)
target_compile_definitions(e2e_runtime_test PRIVATE ${e2e_definitions}
  RUNTIME_CLIENT_12="$<TARGET_FILE:runtime_client_12>" RUNTIME_CLIENT_13="$<TARGET_FILE:runtime_client_13>"
  RUNTIME_PLUGIN_12="$<TARGET_FILE:runtime_plugin_12>" RUNTIME_PLUGIN_13="$<TARGET_FILE:runtime_plugin_13>")
add_dependencies(e2e_runtime_test gpucap_shim fake_libcuda fake_libnvidia_ml runtime_client_12 runtime_client_13 runtime_plugin_12
  runtime_plugin_13)
gtest_discover_tests(e2e_runtime_test TEST_PREFIX "e2e." PROPERTIES LABELS e2e TIMEOUT 120)

add_test(NAME e2e.clients COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
  ${CMAKE_CURRENT_SOURCE_DIR}/clients.py $<TARGET_FILE:gpucap_shim> ${fake_folder})
set_tests_properties(e2e.clients PROPERTIES LABELS e2e TIMEOUT 300)
