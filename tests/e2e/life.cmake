# Life and death: programs that end, fork, exec and misbehave, under the real library.
find_package(nlohmann_json REQUIRED)
add_library(e2e_life_library MODULE life_library.cpp)
add_executable(e2e_life_program life_program.cpp life_manners.cpp)
foreach(target e2e_life_library e2e_life_program)
  target_link_libraries(${target} PRIVATE fake_libcuda gpucap_cuda_headers gpucap_warnings ${CMAKE_DL_LIBS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/e2e
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/e2e BUILD_WITH_INSTALL_RPATH ON)
endforeach()
target_link_options(e2e_life_program PRIVATE -pthread)
add_executable(e2e_life_test life_death_test.cpp life_end_test.cpp life_manners_test.cpp)
target_link_libraries(e2e_life_test PRIVATE gpucap_wire_reader fake_truth_file gpucap_warnings
  nlohmann_json::nlohmann_json GTest::gtest_main)
target_compile_definitions(e2e_life_test PRIVATE ${e2e_definitions} LIFE_PROGRAM="$<TARGET_FILE:e2e_life_program>"
  LIFE_LIBRARY="$<TARGET_FILE:e2e_life_library>" LIFE_SCRIPT="${CMAKE_CURRENT_SOURCE_DIR}/life_script.py"
  TOP_PROGRAM="$<TARGET_FILE:gpucap-top>" PYTHON="${Python3_EXECUTABLE}")
add_dependencies(e2e_life_test gpucap_shim gpucap-top e2e_client e2e_life_program e2e_life_library fake_libnvidia_ml)
gtest_discover_tests(e2e_life_test TEST_PREFIX "e2e.life." PROPERTIES LABELS e2e TIMEOUT 120)
