# NVML's memory queries under the library: a C client (linked, and by look-ups), nvidia-ml-py, a machine with MIG.
set(nvml_folder ${CMAKE_BINARY_DIR}/e2e)
set(nvml_mig_folder ${nvml_folder}/mig)
add_executable(nvml_client nvml_client.cpp)
add_executable(nvml_linked_client nvml_client.cpp)
target_compile_definitions(nvml_linked_client PRIVATE NVML_LINKED)
target_link_libraries(nvml_linked_client PRIVATE fake_libnvidia_ml)
foreach(target nvml_client nvml_linked_client)
  target_link_libraries(${target} PRIVATE gpucap_loader gpucap_cuda_headers gpucap_warnings ${CMAKE_DL_LIBS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${nvml_folder} BUILD_WITH_INSTALL_RPATH ON)
endforeach()

add_library(nvml_mig_fake SHARED nvml_mig_fake.cpp)
target_link_libraries(nvml_mig_fake PRIVATE gpucap_warnings)
target_include_directories(nvml_mig_fake PRIVATE ${CMAKE_SOURCE_DIR})
target_link_options(nvml_mig_fake PRIVATE -Wl,-soname,libnvidia-ml.so.1)
set_target_properties(nvml_mig_fake PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME libnvidia-ml.so.1 NO_SONAME ON
  LIBRARY_OUTPUT_DIRECTORY ${nvml_mig_folder})

add_executable(e2e_nvml_test nvml_test.cpp)
target_link_libraries(e2e_nvml_test PRIVATE gpucap_wire_reader fake_truth_file gpucap_warnings GTest::gtest_main)
target_compile_definitions(e2e_nvml_test PRIVATE ${e2e_definitions} NVML_CLIENT="$<TARGET_FILE:nvml_client>"
  NVML_LINKED_CLIENT="$<TARGET_FILE:nvml_linked_client>" NVML_MIG_FOLDER="${nvml_mig_folder}")
add_dependencies(e2e_nvml_test gpucap_shim fake_libcuda fake_libnvidia_ml nvml_client nvml_linked_client nvml_mig_fake)
gtest_discover_tests(e2e_nvml_test TEST_PREFIX "e2e." PROPERTIES LABELS e2e TIMEOUT 120)

add_test(NAME e2e.nvml_clients COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
  ${CMAKE_CURRENT_SOURCE_DIR}/nvml_clients.py $<TARGET_FILE:gpucap_shim> ${fake_folder})
set_tests_properties(e2e.nvml_clients PROPERTIES LABELS e2e TIMEOUT 300)

# Where a toolkit brings nvml.h, the compiler compares our declarations with it. GPUCAP_NVML_INCLUDE names another place.
find_path(GPUCAP_NVML_INCLUDE nvml.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include NO_DEFAULT_PATH)
if(GPUCAP_NVML_INCLUDE)
  add_library(nvml_api_test OBJECT nvml_api_test.cpp)
  target_include_directories(nvml_api_test PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(nvml_api_test SYSTEM PRIVATE ${GPUCAP_NVML_INCLUDE})
  target_link_libraries(nvml_api_test PRIVATE gpucap_warnings)
endif()
