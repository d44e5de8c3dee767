# The guard against slow growth: instruction counts of the hot paths, compared with instructions.json. Counts belong to a
# compiler and a build type; elsewhere, and without valgrind, the test says so and is skipped.
bench_program(guard_bench guard_bench.cpp driver.cpp)
target_link_libraries(guard_bench PRIVATE gpucap_process gpucap_core gpucap_wire_writer gpucap_cuda_headers ${CMAKE_DL_LIBS})
add_library(still_clock MODULE still_clock.cpp)
target_link_libraries(still_clock PRIVATE gpucap_warnings)
set_target_properties(still_clock PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${bench_folder})
add_dependencies(guard_bench still_clock gpucap_shim fake_libcuda fake_libnvidia_ml)
string(REGEX MATCH "^[0-9]+" bench_compiler_major ${CMAKE_CXX_COMPILER_VERSION})
add_test(NAME bench.instructions COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/check_instructions.py
  --build ${CMAKE_BINARY_DIR} --compiler ${CMAKE_CXX_COMPILER_ID}-${bench_compiler_major}-${CMAKE_SYSTEM_PROCESSOR}-${CMAKE_BUILD_TYPE})
set_tests_properties(bench.instructions PROPERTIES LABELS e2e TIMEOUT 300 SKIP_RETURN_CODE 77
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
