// The log's filters and counts.
#include <gtest/gtest.h>

#include "tools/top/counts.h"
#include "tools/top/event_filter.h"

namespace gpucap::tools {
namespace {

EventRecord event_of(uint8_t operation, const char* api, uint64_t bytes, uint32_t latency_ns = 0) {
  EventRecord event;
  event.operation = operation;
  event.api = api;
  event.bytes = bytes;
  event.latency_ns = latency_ns;
  event.result = operation == GPUCAP_OP_REFUSE || operation == GPUCAP_OP_FAIL ? 2 : 0;
  return event;
}

TEST(ParseBytes, ReadsSizesDownToAByte) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("4K"), 4096u);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1610612736u);
  EXPECT_EQ(parse_bytes("64mb"), 64000000u);
  EXPECT_EQ(parse_bytes("7B"), 7u);
  for (const char* text : {"", "G", "-1", "1X", "1 G", "nan", "1e9", "99999999999G", "10%"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(EventFilter, WantsEverythingAtFirst) { EXPECT_TRUE(EventFilter().wants(event_of(GPUCAP_OP_DRIVER, "x", 0))); }

TEST(EventFilter, ComparesSizesInclusively) {
  EventFilter filter;
  std::string error;
  ASSERT_TRUE(filter.add_sizes({">=1K", "<=2K"}, &error));
  EXPECT_FALSE(filter.wants(event_of(GPUCAP_OP_CHARGE, "x", 1023)));
  EXPECT_TRUE(filter.wants(event_of(GPUCAP_OP_CHARGE, "x", 1024)));
  EXPECT_TRUE(filter.wants(event_of(GPUCAP_OP_CHARGE, "x", 2048)));
  EXPECT_FALSE(filter.wants(event_of(GPUCAP_OP_CHARGE, "x", 2049)));
  EventFilter exact;
  ASSERT_TRUE(exact.add_sizes({"2K"}, &error));
  EXPECT_TRUE(exact.wants(event_of(GPUCAP_OP_CHARGE, "x", 2048)));
  EXPECT_FALSE(exact.wants(event_of(GPUCAP_OP_CHARGE, "x", 2049)));
  EXPECT_FALSE(exact.add_sizes({">1G"}, &error));
}

TEST(EventFilter, GlobsTheDriversAndTheRuntimesFunction) {
  EventFilter filter;
  filter.apis = {"cudaMalloc*", "cuMemFree_v2"};
  EventRecord event = event_of(GPUCAP_OP_CHARGE, "cuMemAlloc_v2", 1);
  EXPECT_FALSE(filter.wants(event));
  event.origin = "cudaMallocAsync";
  EXPECT_TRUE(filter.wants(event));
  EXPECT_TRUE(filter.wants(event_of(GPUCAP_OP_RELEASE, "cuMemFree_v2", 1)));
}

TEST(EventFilter, KnowsGpusByNumberOrUuid) {
  EventFilter filter;
  filter.gpus = {"1", "GPU-ab"};
  EventRecord event = event_of(GPUCAP_OP_CHARGE, "x", 1);
  EXPECT_FALSE(filter.wants(event));
  event.gpu_uuid = "GPU-abcd0000-0000-0000-0000-000000000000";
  EXPECT_TRUE(filter.wants(event));
  event.gpu_uuid = "GPU-ac";
  EXPECT_FALSE(filter.wants(event));
  event.gpu = 1;
  EXPECT_TRUE(filter.wants(event));
}

TEST(EventFilter, TakesOperationsAndResultsByName) {
  EventFilter filter;
  std::string error;
  ASSERT_TRUE(filter.add_operations({"refuse,fail", "wait"}, &error));
  EXPECT_TRUE(filter.wants(event_of(GPUCAP_OP_WAIT, "x", 1)));
  EXPECT_TRUE(filter.wants(event_of(GPUCAP_OP_FAIL, "x", 1)));
  EXPECT_FALSE(filter.wants(event_of(GPUCAP_OP_CHARGE, "x", 1)));
  EXPECT_FALSE(filter.add_operations({"refsue"}, &error));
  EXPECT_NE(error.find("did you mean refuse?"), std::string::npos) << error;

  EventFilter results;
  ASSERT_TRUE(results.add_results({"out_of_memory,999"}, &error));
  EventRecord event = event_of(GPUCAP_OP_REFUSE, "x", 1);
  EXPECT_TRUE(results.wants(event));
  event.result = 999;
  EXPECT_TRUE(results.wants(event));
  event.result = 1;
  EXPECT_FALSE(results.wants(event));
  EventFilter errors;
  ASSERT_TRUE(errors.add_results({"error"}, &error));
  EXPECT_TRUE(errors.wants(event));
  event.result = 0;
  EXPECT_FALSE(errors.wants(event));
  EXPECT_FALSE(errors.add_results({"CUDA_ERROR_OUT_OF_MEMRY"}, &error));
  EXPECT_NE(error.find("did you mean CUDA_ERROR_OUT_OF_MEMORY?"), std::string::npos) << error;
}

TEST(LatencyHistogram, IsExactBelow128AndWithinOneIn128Above) {
  for (const uint64_t value : {1u, 127u, 128u, 255u, 256u, 257u, 1500u, 1000000u, 4294967295u}) {
    LatencyHistogram histogram;
    histogram.add(static_cast<uint32_t>(value));
    EXPECT_EQ(histogram.percentile_ns(99), value) << "never more than the longest";
    histogram.add(UINT32_MAX);
    EXPECT_EQ(histogram.mean_ns(), (value + UINT32_MAX) / 2);
    EXPECT_GE(histogram.percentile_ns(50), value);
    EXPECT_LE(histogram.percentile_ns(50), value + value / 128);
  }
}

TEST(LatencyHistogram, NinetyNineInAHundredAreBelowThe99th) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile_ns(99), 0u);
  for (int i = 0; i < 99; ++i) histogram.add(10);
  histogram.add(100);
  EXPECT_EQ(histogram.percentile_ns(99), 10u);
  histogram.add(100);
  EXPECT_EQ(histogram.percentile_ns(99), 100u);
  EXPECT_EQ(histogram.percentile_ns(50), 10u);
}

TEST(EventCounts, CountCallsByFunction) {
  EventCounts counts;
  counts.add(event_of(GPUCAP_OP_CHARGE, "cuMemAlloc_v2", 1 << 20, 2000));
  counts.add(event_of(GPUCAP_OP_CHARGE, "cuMemAlloc_v2", 3 << 20, 4000));
  counts.add(event_of(GPUCAP_OP_REFUSE, "cuMemAlloc_v2", 64 << 20));
  counts.add(event_of(GPUCAP_OP_FAIL, "cuMemAlloc_v2", 8 << 20));
  counts.add(event_of(GPUCAP_OP_RELEASE, "cuMemFree_v2", 1 << 20));
  counts.add(event_of(GPUCAP_OP_WAIT, "cuMemAlloc_v2", 1 << 20));
  counts.add(event_of(GPUCAP_OP_DRIVER, "none", 1 << 20));
  EXPECT_EQ(counts_as_table(counts.by_calls()),
            (std::vector<std::string>{"API            CALLS  REFUSED  FAILED     BYTES     MEAN      P99",
                                      "cuMemAlloc_v2      4        1       1  4.00 MiB  3.00 us  4.00 us",
                                      "cuMemFree_v2       1        0       0  1.00 MiB        -        -"}));
  EXPECT_EQ(counts_as_csv(counts.by_calls()),
            "api,calls,refused,failed,bytes,timed,mean_ns,p99_ns\n"
            "cuMemAlloc_v2,4,1,1,4194304,2,3000,4000\n"
            "cuMemFree_v2,1,0,0,1048576,0,,\n");
}

}  // namespace
}  // namespace gpucap::tools
