# The members' arithmetic alone, compiled with a hook before each access, under a scheduler of the test's own. Never
# sanitized or fortified: it jumps between stacks.
add_executable(group_interleaving_test group_interleaving_test.cpp group_scheduler.cpp ${CMAKE_SOURCE_DIR}/wire/group_member.cpp)
target_include_directories(group_interleaving_test PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_definitions(group_interleaving_test PRIVATE GPUCAP_TEST_STEPS GPUCAP_TEST_ACCESSES)
target_compile_options(group_interleaving_test PRIVATE -U_FORTIFY_SOURCE -O2)
target_link_libraries(group_interleaving_test PRIVATE gpucap_warnings GTest::gtest GTest::gtest_main)
gtest_discover_tests(group_interleaving_test PROPERTIES LABELS unit TIMEOUT 60 DISCOVERY_TIMEOUT 60)
