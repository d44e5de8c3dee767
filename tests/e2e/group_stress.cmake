# Groups under death: the library with its steps of bookkeeping made visible (wire/steps.h), the members, and the tests
# that kill them. The test build is the product's sources, with the wire's and the process's compiled once more; its
# objects come first, so that nothing is taken from their archives.
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
get_target_property(stepped_process gpucap_process SOURCES)
list(TRANSFORM stepped_process PREPEND ${CMAKE_SOURCE_DIR}/shim/process/)
get_target_property(stepped_wire gpucap_wire_writer SOURCES)
list(TRANSFORM stepped_wire PREPEND ${CMAKE_SOURCE_DIR}/wire/)
get_target_property(shim_top gpucap_shim SOURCES)
list(TRANSFORM shim_top PREPEND ${CMAKE_SOURCE_DIR}/shim/)
add_library(gpucap_shim_testing SHARED kill_points.cpp ${stepped_wire} ${stepped_process} ${shim_top})
set_target_properties(gpucap_shim_testing PROPERTIES OUTPUT_NAME gpucap_testing LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/e2e
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/shim/exports.map)
target_compile_definitions(gpucap_shim_testing PRIVATE GPUCAP_TEST_STEPS GPUCAP_VERSION="${PROJECT_VERSION}-testing" SPDLOG_FMT_EXTERNAL)
target_include_directories(gpucap_shim_testing PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(gpucap_shim_testing SYSTEM PRIVATE $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(gpucap_shim_testing PRIVATE gpucap_warnings gpucap_guest fmt::fmt-header-only gpucap_runtime gpucap_driver
  gpucap_nvml gpucap_process gpucap_loader gpucap_core)
get_target_property(shim_link_options gpucap_shim LINK_OPTIONS)
target_link_options(gpucap_shim_testing PRIVATE ${shim_link_options})
if(TARGET gpucap_compat)
  add_dependencies(gpucap_shim_testing gpucap_compat)
endif()

add_executable(e2e_group_program group_program.cpp group_stress_program.cpp)
target_include_directories(e2e_group_program PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(e2e_group_program PRIVATE fake_libcuda gpucap_cuda_headers gpucap_warnings ${CMAKE_DL_LIBS})
target_link_options(e2e_group_program PRIVATE -pthread)
set_target_properties(e2e_group_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/e2e BUILD_WITH_INSTALL_RPATH ON)

add_executable(e2e_group_stress_test group_kill_test.cpp group_stress_test.cpp group_stress_children_test.cpp)
target_link_libraries(e2e_group_stress_test PRIVATE gpucap_wire_reader fake_truth_file gpucap_warnings GTest::gtest_main)
target_compile_definitions(e2e_group_stress_test PRIVATE GPUCAP_LIBRARY="$<TARGET_FILE:gpucap_shim>" FAKE_CUDA_FOLDER="${fake_folder}"
  CLIENT_PROGRAM="$<TARGET_FILE:e2e_group_program>" TOLD_PROGRAM="$<TARGET_FILE:e2e_group_program>"
  TESTING_LIBRARY="$<TARGET_FILE:gpucap_shim_testing>" SOURCE_FOLDER="${CMAKE_SOURCE_DIR}")
add_dependencies(e2e_group_stress_test gpucap_shim gpucap_shim_testing e2e_group_program fake_libnvidia_ml)
gtest_discover_tests(e2e_group_stress_test TEST_PREFIX "e2e." PROPERTIES LABELS e2e TIMEOUT 120)

# The policy file, which only the test build takes from elsewhere than /etc.
add_executable(e2e_policy_test policy_test.cpp)
target_link_libraries(e2e_policy_test PRIVATE gpucap_wire_reader fake_truth_file gpucap_warnings GTest::gtest_main)
target_compile_definitions(e2e_policy_test PRIVATE ${e2e_definitions} GPUCAP_TESTING_LIBRARY="$<TARGET_FILE:gpucap_shim_testing>")
add_dependencies(e2e_policy_test gpucap_shim_testing e2e_told_client fake_libnvidia_ml)
gtest_discover_tests(e2e_policy_test TEST_PREFIX "e2e." PROPERTIES LABELS e2e TIMEOUT 120)
