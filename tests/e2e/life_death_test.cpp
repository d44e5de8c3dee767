// Death at any moment, and what it leaves: nothing that disturbs the next, and figures that can still be read.
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/e2e/life_world.h"

namespace gpucap::e2e {
namespace {

class Death : public LifeWorld {
 protected:
  // Every event that was ever claimed is either there, whole and in its place, or counted as lost.
  void expect_consistent(const SeenSegment& segment) {
    const int directory = open(segments().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    wire::SegmentReader reader;
    int error_number = 0;
    const std::string name = std::filesystem::path(segment.path).filename();
    ASSERT_EQ(reader.open(directory, name.c_str(), &error_number), wire::ReadError::kNone);
    close(directory);
    wire::FileRingReader ring = reader.ring();
    uint64_t delivered = 0;
    gpucap_event event;
    wire::RingStatus status;
    while ((status = ring.next(true, &event)) == wire::RingStatus::kEvent) {
      ++delivered;
      ASSERT_EQ(event.sequence, ring.position()) << "an event stands in another's place";
      ASSERT_LT(event.api, reader.api_names().size());
      ASSERT_LT(event.device, segment.snapshot.devices.size());
      ASSERT_GE(event.operation, GPUCAP_OP_CHARGE);
      ASSERT_LE(event.operation, GPUCAP_OP_DRIVER);
      ASSERT_LE(event.kind, GPUCAP_KIND_CONTEXT);
      ASSERT_GE(event.monotonic_ns, segment.snapshot.created_monotonic_ns);
      ASSERT_NE(event.thread, 0u);
    }
    EXPECT_EQ(status, wire::RingStatus::kCaughtUp);
    EXPECT_EQ(delivered + ring.lost(), segment.snapshot.events_claimed + segment.snapshot.events_dropped);
    const gpucap_device& gauges = segment.snapshot.devices[0].gauges;
    EXPECT_EQ(gauges.limit_bytes, 4 * kGiB);
    EXPECT_LE(gauges.peak_bytes, 4 * kGiB);
    for (const int64_t bytes : {gauges.linear_bytes, gauges.pool_bytes, segment.snapshot.devices[0].reserved_bytes}) {
      EXPECT_GE(bytes, 0);
      EXPECT_LE(bytes, static_cast<int64_t>(4 * kGiB));
    }
  }
};

TEST_F(Death, AtAnyMomentDisturbsNobody) {
  Child bystander(client({"linked", "until-refused", "alloc", std::to_string(100 * kMiB), "10"}), capped("4G"));
  ASSERT_TRUE(bystander.wait_for("READY")) << bystander.err;
  std::random_device device;
  const unsigned seed = device();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(12);
  int killed = 0, with_a_segment = 0, with_events = 0;
  while (std::chrono::steady_clock::now() < until && !HasFailure()) {
    Child victim(program({"churn"}), capped("4G"));
    const bool from_the_start = random() % 2 == 0;  // also while it is starting, and while it makes its segment
    if (!from_the_start) {
      ASSERT_TRUE(victim.wait_for("READY")) << victim.err;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40000));
    kill(victim.pid, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(victim.finish()));
    ++killed;
    const std::vector<SeenSegment> left = seen(victim.pid);
    if (!from_the_start) {
      EXPECT_EQ(left.size(), 1u);
    }
    for (const SeenSegment& segment : left) {
      ++with_a_segment;
      with_events += segment.snapshot.events_claimed > 10 ? 1 : 0;
      EXPECT_EQ(segment.liveness, wire::Liveness::kKilled);
      expect_consistent(segment);
    }
    if (killed % 8 == 0) expect_undisturbed("after a death");
  }
  EXPECT_GT(killed, 20);
  EXPECT_GT(with_a_segment, killed / 4);
  EXPECT_GT(with_events, killed / 8);

  const auto all = nlohmann::json::parse(top({"--json", "--all"}));
  int dead = 0, living = 0;
  for (const auto& process : all.at("processes")) {
    const bool is_bystander = process.at("pid") == bystander.pid;
    EXPECT_EQ(process.at("state") == "live", is_bystander) << process;
    ++(is_bystander ? living : dead);
  }
  EXPECT_EQ(living, 1);
  EXPECT_GT(dead, 0);
  EXPECT_NE(top({"--once"}).find(std::to_string(bystander.pid)), std::string::npos);
  EXPECT_NE(top({"events"}).find("cuMemAlloc_v2"), std::string::npos);

  expect_true_figures(bystander.pid);
  bystander.out.clear();
  bystander.tell("\n");
  ASSERT_TRUE(bystander.wait_for("READY"));
  EXPECT_EQ(value_of(bystander.out, "failed_frees"), "0");
  EXPECT_EQ(bystander.finish(), 0);
}

TEST_F(Death, HalfMadeFilesDoNotPileUp) {
  std::filesystem::create_directories(segments());
  for (int i = 0; i < 20; ++i) {
    // As a process leaves it that dies between making the file and giving it its name; hours ago.
    const std::string name = segments() + "/." + std::to_string(4000000 + i) + ".0000000000000001.gpucap.tmp";
    close(open(name.c_str(), O_CREAT | O_WRONLY, 0600));
    const timespec long_ago[2] = {{1000000, 0}, {1000000, 0}};
    utimensat(AT_FDCWD, name.c_str(), long_ago, 0);
  }
  expect_undisturbed("beside half-made files");
  for (const auto& entry : std::filesystem::directory_iterator(segments()))
    EXPECT_EQ(entry.path().extension(), GPUCAP_WIRE_SUFFIX) << entry.path();
}

class Exec : public Death, public testing::WithParamInterface<const char*> {};

TEST_P(Exec, OldImageIsOverAndTheNewOneStartsAfresh) {
  const bool preloaded = std::string(GetParam()) == "exec";
  Child child(program({GetParam(), LIFE_PROGRAM, "hold", std::to_string(kGiB)}), capped("4G"));
  ASSERT_TRUE(child.wait_for("FIRST")) << child.err;
  ASSERT_EQ(seen(child.pid).size(), 1u);
  EXPECT_EQ(seen(child.pid)[0].liveness, wire::Liveness::kAlive);
  child.tell("\n");
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  const std::vector<SeenSegment> both = seen(child.pid);
  ASSERT_EQ(both.size(), preloaded ? 2u : 1u);
  EXPECT_EQ(both[0].liveness, wire::Liveness::kKilled) << "the pid lives, the image does not";
  EXPECT_EQ(both[0].snapshot.devices[0].gauges.linear_bytes, static_cast<int64_t>(100 * kMiB));
  if (preloaded) {
    EXPECT_EQ(both[1].liveness, wire::Liveness::kAlive);
    EXPECT_EQ(both[1].snapshot.devices[0].gauges.linear_bytes, static_cast<int64_t>(kGiB));
  }
  const auto living = nlohmann::json::parse(top({"--json"}));
  EXPECT_EQ(living.at("processes").size(), preloaded ? 1u : 0u);
  EXPECT_EQ(child.finish(), 0);
}
INSTANTIATE_TEST_SUITE_P(Image, Exec, testing::Values("exec", "exec-bare"),
                         [](const auto& test) { return std::string(test.param) == "exec" ? "Preloaded" : "Bare"; });

TEST_F(Death, SixtyFourProcessesStartAtOnceAndAreCappedEach) {
  constexpr int kProcesses = 64;
  Environment environment = capped("1G");
  environment["FAKE_CUDA_MEMORY"] = std::to_string(200 * kGiB);
  environment["FAKE_CUDA_INIT_MS"] = "20";
  environment["GPUCAP_LOG"] = "error";
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < kProcesses; ++i)
    children.push_back(std::make_unique<Child>(program({"fill", std::to_string(64 * kMiB)}), environment));
  for (auto& child : children) ASSERT_TRUE(child->wait_for("WAITING")) << child->err;
  for (auto& child : children) child->tell("\n");
  for (auto& child : children) {
    ASSERT_TRUE(child->wait_for("READY")) << child->out << child->err;
    EXPECT_EQ(value_of(child->out, "taken"), "7");
    EXPECT_EQ(value_of(child->out, "result"), "2");
    EXPECT_EQ(child->err, "");
    EXPECT_LE(truth(child->pid).peak, kGiB);
  }
  std::vector<SeenSegment> all = seen();
  EXPECT_EQ(all.size(), static_cast<size_t>(kProcesses));
  for (const SeenSegment& segment : all) {
    EXPECT_EQ(segment.liveness, wire::Liveness::kAlive);
    EXPECT_EQ(segment.snapshot.devices[0].used_bytes(), kContext + 7 * 64 * kMiB);
  }
  for (size_t i = 0; i < children.size(); i += 2) kill(children[i]->pid, SIGKILL);
  for (size_t i = 0; i < children.size(); ++i) EXPECT_EQ(WIFSIGNALED(children[i]->finish()), i % 2 == 0);
  for (const SeenSegment& segment : seen()) EXPECT_NE(segment.liveness, wire::Liveness::kAlive);
}

}  // namespace
}  // namespace gpucap::e2e
