// CUDA runtimes under the cap: each caller is served by the runtime that it was linked with, and sees that runtime's
// errors.
#include <map>

#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

struct NamedEvent {
  gpucap_event event;
  std::string api, origin;
};

class Runtimes : public World {
 protected:
  std::vector<NamedEvent> events(pid_t pid) {
    std::vector<NamedEvent> all;
    const std::string folder = folder_ + "/segments", prefix = std::to_string(pid) + ".";
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) return all;
    while (const dirent* entry = readdir(directory)) {
      if (std::string(entry->d_name).rfind(prefix, 0) != 0) continue;
      wire::SegmentReader reader;
      int error_number = 0;
      if (reader.open(dirfd(directory), entry->d_name, &error_number) != wire::ReadError::kNone) continue;
      wire::FileRingReader ring = reader.ring();
      NamedEvent next{};
      while (ring.next(false, &next.event) == wire::RingStatus::kEvent) {
        next.api = reader.api_names().at(next.event.api);
        next.origin = reader.api_names().at(next.event.origin);
        all.push_back(next);
      }
    }
    closedir(directory);
    return all;
  }
  std::map<std::string, int> origins(const std::vector<NamedEvent>& all, uint8_t operation) {
    std::map<std::string, int> counts;
    for (const NamedEvent& named : all)
      if (named.event.operation == operation && named.event.kind != GPUCAP_KIND_CONTEXT)
        ++counts[named.origin + ">" + named.api];
    return counts;
  }
};

struct Pair {
  const char *program, *plugin;
  const char *host_version, *guest_version;
};

class TwoRuntimes : public Runtimes, public testing::WithParamInterface<Pair> {};

TEST_P(TwoRuntimes, ServeEachCallerByItsOwnUnderOneCap) {
  Child child({GetParam().program, GetParam().plugin}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "host_version"), GetParam().host_version);
  EXPECT_EQ(value_of(child.out, "guest_version"), GetParam().guest_version);
  const bool same = std::string(GetParam().host_version) == GetParam().guest_version;
  for (const std::string who : {"host", "guest"}) {
    SCOPED_TRACE(who);
    const std::string other = who == "host" ? "guest" : "host";
    EXPECT_EQ(number(child.out, who + "_total"), 4 * kGiB);
    EXPECT_EQ(number(child.out, who + "_properties_total"), 4 * kGiB);
    EXPECT_EQ(value_of(child.out, who + "_taken"), "6");
    EXPECT_EQ(value_of(child.out, who + "_result"), "2") << "cudaErrorMemoryAllocation";
    EXPECT_EQ(value_of(child.out, who + "_peek"), "2");
    EXPECT_EQ(value_of(child.out, other + "_peek_while_" + who + "_failed"), same ? "2" : "0")
        << "not in the other runtime";
    EXPECT_EQ(value_of(child.out, who + "_last_error"), "2");
    EXPECT_EQ(value_of(child.out, who + "_last_error_again"), "0") << "nothing sticks";
    EXPECT_EQ(value_of(child.out, who + "_failed_frees"), "0");
    EXPECT_EQ(value_of(child.out, who + "_async"), "0");
    EXPECT_EQ(value_of(child.out, who + "_async_free"), "0");
    EXPECT_EQ(value_of(child.out, who + "_bad_free"), "1") << "the driver's answer";
    EXPECT_EQ(value_of(child.out, who + "_bad_free_error"), "1");
  }
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  EXPECT_EQ(truth(child.pid).bytes, kContext) << "both runtimes share the primary context, and all else was given back";
  expect_true_figures(child.pid);
}

TEST_P(TwoRuntimes, AnswerAsWithoutUsWhereNothingIsRefused) {
  Child without({GetParam().program, GetParam().plugin}, bare());
  ASSERT_TRUE(without.wait_for("READY")) << without.out << without.err;
  without.finish();  // before the other begins: both use the whole card
  Child with({GetParam().program, GetParam().plugin}, capped(""));
  ASSERT_TRUE(with.wait_for("READY")) << with.out << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(value_of(with.out, "host_result"), "2") << "the card's own end";
}
INSTANTIATE_TEST_SUITE_P(Runtime, TwoRuntimes,
                         testing::Values(Pair{RUNTIME_CLIENT_12, RUNTIME_PLUGIN_13, "12090", "13000"},
                                         Pair{RUNTIME_CLIENT_13, RUNTIME_PLUGIN_12, "13000", "12090"},
                                         Pair{RUNTIME_CLIENT_12, RUNTIME_PLUGIN_12, "12090", "12090"}),
                         [](const auto& test) {
                           return std::string("Program") + std::string(test.param.host_version, 2) + "Plugin" +
                                  std::string(test.param.guest_version, 2);
                         });

TEST_F(Runtimes, RefusalNamesTheRuntimesFunctionAndTheDrivers) {
  Child child({RUNTIME_CLIENT_12, RUNTIME_PLUGIN_13}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(
      child.err.find("gpucap: refused cudaMalloc (cuMemAlloc_v2) of 512.00 MiB on GPU 0: the cap of 4.00 GiB has"), 0u)
      << child.err;
}

TEST_F(Runtimes, EventsCarryTheirOrigin) {
  Child child({RUNTIME_CLIENT_12, RUNTIME_PLUGIN_13}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  const std::vector<NamedEvent> all = events(child.pid);
  const auto charges = origins(all, GPUCAP_OP_CHARGE), refusals = origins(all, GPUCAP_OP_REFUSE);
  EXPECT_EQ(charges.count("cudaMalloc>cuMemAlloc_v2") == 0 ? 0 : charges.at("cudaMalloc>cuMemAlloc_v2"), 12)
      << all.size();
  EXPECT_EQ(charges.count("cudaMallocAsync>cuMemAllocAsync") == 0 ? 0 : charges.at("cudaMallocAsync>cuMemAllocAsync"),
            2);
  EXPECT_EQ(refusals.count("cudaMalloc>cuMemAlloc_v2") == 0 ? 0 : refusals.at("cudaMalloc>cuMemAlloc_v2"), 2);
  for (const auto& [name, count] : charges)
    EXPECT_EQ(name.rfind("none>", 0), std::string::npos) << name << " " << count;
  const auto releases = origins(all, GPUCAP_OP_RELEASE);
  EXPECT_EQ(releases.count("cudaFree>cuMemFree_v2") == 0 ? 0 : releases.at("cudaFree>cuMemFree_v2"), 12);
}

// Python opens libraries RTLD_LOCAL and asks dlsym for every function.
TEST_F(Runtimes, PythonThroughCtypesIsCapped) {
  const char* const program =
      "import ctypes, sys\n"
      "for name in ('libcudart.so.12', 'libcudart.so.13'):\n"
      "    cudart = ctypes.CDLL(name)\n"
      "    version, pointer = ctypes.c_int(), ctypes.c_void_p()\n"
      "    free, total = ctypes.c_size_t(), ctypes.c_size_t()\n"
      "    cudart.cudaRuntimeGetVersion(ctypes.byref(version))\n"
      "    cudart.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))\n"
      "    pieces = []\n"
      "    while (result := cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(512 << 20))) == 0:\n"
      "        pieces.append(pointer.value)\n"
      "    print('%s=%d taken %d result %d total %d last error %d then %d' % (name, version.value, len(pieces), "
      "result,\n"
      "          total.value, cudart.cudaGetLastError(), cudart.cudaGetLastError()))\n"
      "    print('%s_frees=%d' % (name, sum(cudart.cudaFree(ctypes.c_void_p(p)) for p in pieces)))\n"
      "print('READY', flush=True)\n"
      "sys.stdin.readline()\n";
  Child child({"python3", "-c", program}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "libcudart.so.12"), "12090 taken 6 result 2 total 4294967296 last error 2 then 0");
  EXPECT_EQ(value_of(child.out, "libcudart.so.13"), "13000 taken 6 result 2 total 4294967296 last error 2 then 0");
  EXPECT_EQ(value_of(child.out, "libcudart.so.12_frees"), "0");
  EXPECT_EQ(value_of(child.out, "libcudart.so.13_frees"), "0");
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  expect_true_figures(child.pid);
}

}  // namespace
}  // namespace gpucap::e2e
