// Named points between two steps of the bookkeeping that processes share. In the test build of the library each calls
// gpucap_test_step(), which kills the process or lets another one run there; in what users get they are nothing.
#pragma once

#ifdef GPUCAP_TEST_STEPS
extern "C" void gpucap_test_step(const char* name);
#define GPUCAP_STEP(name) gpucap_test_step(name)
#else
#define GPUCAP_STEP(name) static_cast<void>(0)
#endif

// Finer: right before each access to a word of the members' shared figures, for the test that tries all orders of them.
#ifdef GPUCAP_TEST_ACCESSES
extern "C" void gpucap_test_access(const void* word, unsigned bytes);
#define GPUCAP_ACCESS(word) gpucap_test_access(&(word), sizeof(word))
#else
#define GPUCAP_ACCESS(word) static_cast<void>(0)
#endif
