// Reading what strangers wrote: every mutation of a good file is refused by name or read without harm.
#include "wire/segment_reader.h"

#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "tests/wire/scratch.h"

namespace gpucap::wire::test {
namespace {

// A good segment's bytes, from a writer that is gone, with five events.
class Sample {
 public:
  Sample() {
    Child child(segment_owner(directory_.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
      for (uint64_t i = 0; i < 5; ++i) {
        gpucap_event event = {};
        event.bytes = i;
        static_cast<void>(writer.ring().publish(event));
      }
      std::strcpy(writer.device(0)->name, "Card \x1b[31m");
      channel.say('w');
    }));
    EXPECT_EQ(child.hear(), 'r');
    EXPECT_EQ(child.hear(), 'w');
    child.kill_and_wait();
    name_ = directory_.only_file();
    std::ifstream file(path(), std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/" + name_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  gpucap_header header() const {
    gpucap_header header;
    std::memcpy(&header, bytes_.data(), sizeof(header));
    return header;
  }
  ReadError open(SegmentReader* reader) const {
    int error_number = 0;
    return reader->open(directory_.fd(), name_.c_str(), &error_number);
  }
  void store(const std::string& bytes) const { std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes; }
  ReadError open_mutated(const std::function<void(gpucap_header*)>& mutate) const {
    gpucap_header changed = header();
    mutate(&changed);
    std::string copy = bytes_;
    std::memcpy(copy.data(), &changed, sizeof(changed));
    store(copy);
    SegmentReader reader;
    return open(&reader);
  }
  ScratchDirectory directory_;

 private:
  std::string name_;
  std::string bytes_;
};

gpucap_region* region(gpucap_header* header, uint32_t type) {
  for (gpucap_region& entry : header->regions) {
    if (entry.type == type) return &entry;
  }
  std::abort();
}

TEST(SegmentReader, ReadsEventsFromTheFile) {
  Sample sample;
  SegmentReader reader;
  ASSERT_EQ(sample.open(&reader), ReadError::kNone);
  FileRingReader ring = reader.ring();
  gpucap_event event;
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(ring.next(true, &event), RingStatus::kEvent);
    EXPECT_EQ(event.bytes, i);
  }
  EXPECT_EQ(ring.next(true, &event), RingStatus::kCaughtUp);
  EXPECT_EQ(ring.lost(), 0u);
}

TEST(SegmentReader, FollowsALiveWriterThroughTheFile) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
    for (uint64_t i = 0;; ++i) {
      gpucap_event event = {};
      event.bytes = i;
      event.address = ~i;
      static_cast<void>(writer.ring().publish(event));
      if (i == 100) channel.say('w');
    }
  }));
  ASSERT_EQ(child.hear(), 'r');
  ASSERT_EQ(child.hear(), 'w');
  SegmentReader reader;
  int error_number = 0;
  ASSERT_EQ(reader.open(directory.fd(), directory.only_file().c_str(), &error_number), ReadError::kNone);
  FileRingReader ring = reader.ring();
  gpucap_event event;
  uint64_t delivered = 0;
  for (int i = 0; i < 20000; ++i) {
    if (ring.next(false, &event) != RingStatus::kEvent) continue;
    ++delivered;
    ASSERT_EQ(event.address, ~event.bytes);
    ASSERT_EQ(event.bytes + 1, ring.position());
  }
  child.kill_and_wait();
  while (ring.next(true, &event) == RingStatus::kEvent) ++delivered;
  SegmentSnapshot snapshot;
  ASSERT_EQ(reader.snapshot(&snapshot, &error_number), ReadError::kNone);
  EXPECT_EQ(delivered + ring.lost(), snapshot.events_claimed + snapshot.events_dropped);
  EXPECT_GT(delivered, 0u);
}

TEST(SegmentReader, TextIsCleaned) {
  Sample sample;
  ASSERT_EQ(sample.open_mutated([](gpucap_header* header) {
    std::memset(header->run_id, 'A', sizeof(header->run_id));  // no end
    std::memset(header->command, '\x1b', sizeof(header->command));
  }),
            ReadError::kNone);
  SegmentReader reader;
  ASSERT_EQ(sample.open(&reader), ReadError::kNone);
  SegmentSnapshot snapshot;
  int error_number = 0;
  ASSERT_EQ(reader.snapshot(&snapshot, &error_number), ReadError::kNone);
  EXPECT_EQ(snapshot.run_id, std::string(32, 'A'));
  EXPECT_EQ(snapshot.command, std::vector<std::string>{std::string(1024, '?')});
  EXPECT_EQ(snapshot.devices[0].name, "Card ?[31m");
}

TEST(SegmentReader, EveryMutationHasItsNamedReason) {
  using H = gpucap_header;
  const auto with = [](uint32_t type, const std::function<void(gpucap_region*)>& change) {
    return [=](H* header) { change(region(header, type)); };
  };
  const uint32_t kAll[] = {GPUCAP_REGION_DEVICES,     GPUCAP_REGION_API_NAMES, GPUCAP_REGION_API_COUNTERS,
                           GPUCAP_REGION_RING_HEADER, GPUCAP_REGION_EVENTS,    GPUCAP_REGION_CONTROL,
                           GPUCAP_REGION_LANES};
  struct Mutation {
    const char* what;
    std::function<void(H*)> change;
    ReadError reason;
  };
  std::vector<Mutation> mutations = {
      {"magic", [](H* h) { h->magic ^= 1; }, ReadError::kNotASegment},
      {"all zero", [](H* h) { *h = {}; }, ReadError::kNotASegment},
      {"newer major", [](H* h) { h->major = GPUCAP_WIRE_MAJOR + 1; }, ReadError::kOtherVersion},
      {"major 0", [](H* h) { h->major = 0; }, ReadError::kOtherVersion},
      {"newer minor is welcome", [](H* h) { h->minor = 99; }, ReadError::kNone},
      {"being built", [](H* h) { h->state = GPUCAP_STATE_BUILDING; }, ReadError::kNotReady},
      {"unknown state", [](H* h) { h->state = 77; }, ReadError::kBadHeader},
      {"short header", [](H* h) { h->header_bytes = 2047; }, ReadError::kBadHeader},
      {"too many regions", [](H* h) { h->region_count = 17; }, ReadError::kBadHeader},
      {"no regions", [](H* h) { h->region_count = 0; }, ReadError::kMissingRegion},
      {"claims more bytes than there are", [](H* h) { h->file_bytes += 1; }, ReadError::kTooShort},
      {"unknown region types are skipped",
       [](H* h) {
         h->regions[h->region_count++] = {99, 0, 3, UINT64_MAX};
       },
       ReadError::kNone},
      {"a region twice", [](H* h) { h->regions[h->region_count++] = h->regions[0]; }, ReadError::kBadRegion},
      {"no names", with(GPUCAP_REGION_API_NAMES, [](gpucap_region* r) { r->count = 0; }), ReadError::kBadRegion},
      {"ring not a power of two", with(GPUCAP_REGION_EVENTS, [](gpucap_region* r) { r->count = 15; }),
       ReadError::kBadRegion},
      {"ring smaller than its header says", with(GPUCAP_REGION_EVENTS, [](gpucap_region* r) { r->count = 8; }),
       ReadError::kBadRegion},
      {"no events", with(GPUCAP_REGION_EVENTS, [](gpucap_region* r) { r->count = 0; }), ReadError::kBadRegion},
      {"two ring headers", with(GPUCAP_REGION_RING_HEADER, [](gpucap_region* r) { r->count = 2; }),
       ReadError::kBadRegion},
      {"counters for fewer lanes", with(GPUCAP_REGION_LANES, [](gpucap_region* r) { r->count -= 2; }),
       ReadError::kBadRegion},
      {"a lane too few for the devices", with(GPUCAP_REGION_LANES, [](gpucap_region* r) { r->count -= 1; }),
       ReadError::kBadRegion},
      {"lanes without a device", with(GPUCAP_REGION_DEVICES, [](gpucap_region* r) { r->count = 0; }),
       ReadError::kBadRegion},
      {"two control pages", with(GPUCAP_REGION_CONTROL, [](gpucap_region* r) { r->count = 2; }), ReadError::kBadRegion},
      {"too many devices", with(GPUCAP_REGION_DEVICES, [](gpucap_region* r) { r->count = 65; }), ReadError::kBadRegion},
  };
  for (const uint32_t type : kAll) {
    const auto all = [&](const char* what, const std::function<void(gpucap_region*)>& change,
                         ReadError reason = ReadError::kBadRegion) {
      mutations.push_back({what, with(type, change), reason});
    };
    all(
        "missing", [](gpucap_region* r) { r->type = 98; }, ReadError::kMissingRegion);
    all("misaligned", [](gpucap_region* r) { r->offset += 8; });
    all("over the header", [](gpucap_region* r) { r->offset = 1984; });
    all("at 0", [](gpucap_region* r) { r->offset = 0; });
    all("past the end", [](gpucap_region* r) { r->offset = uint64_t{1} << 40; });
    all("at the top of all numbers", [](gpucap_region* r) { r->offset = UINT64_MAX - 63; });
    all("narrow stride", [](gpucap_region* r) { r->stride -= 8; });
    all("odd stride", [](gpucap_region* r) { r->stride += 1; });
    all("stride 0", [](gpucap_region* r) { r->stride = 0; });
    all("vast stride", [](gpucap_region* r) { r->stride = UINT32_MAX - 7; });
    all("vast count", [](gpucap_region* r) { r->count = UINT64_MAX; });
    all("count that overflows to something small", [](gpucap_region* r) { r->count = UINT64_MAX / r->stride + 2; });
  }
  Sample sample;
  for (const Mutation& mutation : mutations) {
    EXPECT_EQ(to_text(sample.open_mutated(mutation.change)), std::string(to_text(mutation.reason))) << mutation.what;
  }
}

TEST(SegmentReader, EveryLengthBelowTheWholeIsRefused) {
  Sample sample;
  for (size_t length = 0; length < sample.bytes().size(); length += length < 2100 ? 97 : 511) {
    sample.store(sample.bytes().substr(0, length));
    SegmentReader reader;
    EXPECT_EQ(sample.open(&reader), ReadError::kTooShort) << length;
  }
}

TEST(SegmentReader, AFileCutShortAfterwardsIsAnErrorAndNotACrash) {
  Sample sample;
  for (const size_t length : {size_t{0}, size_t{100}, size_t{2048}, sample.bytes().size() - 64}) {
    sample.store(sample.bytes());
    SegmentReader reader;
    ASSERT_EQ(sample.open(&reader), ReadError::kNone);
    ASSERT_EQ(truncate(sample.path().c_str(), static_cast<off_t>(length)), 0);
    SegmentSnapshot snapshot;
    int error_number = 0;
    const bool gauges_are_there = length > 2048;
    EXPECT_EQ(reader.snapshot(&snapshot, &error_number), gauges_are_there ? ReadError::kNone : ReadError::kCannotRead);
    FileRingReader ring = reader.ring();
    gpucap_event event;
    RingStatus status = RingStatus::kEvent;
    while (status == RingStatus::kEvent) status = ring.next(true, &event);
    EXPECT_EQ(status, gauges_are_there ? RingStatus::kCaughtUp : RingStatus::kFailed);
    static_cast<void>(reader.liveness());
  }
}

TEST(SegmentReader, WiderStructsOfALaterMinorAreRead) {
  Sample sample;
  gpucap_header header = sample.header();
  const gpucap_region events = *region(&header, GPUCAP_REGION_EVENTS);
  gpucap_region* wide = region(&header, GPUCAP_REGION_EVENTS);
  std::string copy = sample.bytes();
  copy.resize((copy.size() + 63) / 64 * 64);
  wide->offset = copy.size();
  wide->stride = 128;
  for (uint64_t i = 0; i < events.count; ++i) {
    copy += sample.bytes().substr(events.offset + i * 64, 64) + std::string(64, 'z');
  }
  header.file_bytes = copy.size();
  std::memcpy(copy.data(), &header, sizeof(header));
  sample.store(copy);
  SegmentReader reader;
  ASSERT_EQ(sample.open(&reader), ReadError::kNone);
  FileRingReader ring = reader.ring();
  gpucap_event event;
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(ring.next(true, &event), RingStatus::kEvent);
    EXPECT_EQ(event.bytes, i);
  }
  EXPECT_EQ(ring.next(true, &event), RingStatus::kCaughtUp);
}

TEST(SegmentReader, RandomDamageNeverHarms) {
  Sample sample;
  uint64_t seed = 88172645463325252u;
  for (int round = 0; round < 500; ++round) {
    std::string copy = sample.bytes();
    for (int change = 0; change < 20; ++change) {
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      // The first words of each round stay, or nearly all would end at the magic.
      const size_t at = 16 + seed % (change % 2 == 0 ? 2000 : copy.size() - 16);
      copy[at] = static_cast<char>(seed >> 40);
    }
    sample.store(copy);
    SegmentReader reader;
    if (sample.open(&reader) != ReadError::kNone) continue;
    SegmentSnapshot snapshot;
    int error_number = 0;
    ASSERT_EQ(reader.snapshot(&snapshot, &error_number), ReadError::kNone);
    for (const DeviceSnapshot& device : snapshot.devices) static_cast<void>(device.used_bytes());
    FileRingReader ring = reader.ring();
    gpucap_event event;
    RingStatus status = RingStatus::kEvent;
    for (int i = 0; i < 1000 && status == RingStatus::kEvent; ++i) status = ring.next(true, &event);
    EXPECT_EQ(status, RingStatus::kCaughtUp);
  }
}

TEST(SegmentReader, WhatIsNotAFileIsNotOpened) {
  ScratchDirectory directory;
  Sample sample;
  ASSERT_EQ(symlinkat(sample.path().c_str(), directory.fd(), "link"), 0);
  ASSERT_EQ(mkdirat(directory.fd(), "folder", 0700), 0);
  ASSERT_EQ(mkfifoat(directory.fd(), "pipe", 0600), 0);
  for (const char* name : {"link", "folder", "pipe"}) {
    SegmentReader reader;
    int error_number = 0;
    EXPECT_EQ(reader.open(directory.fd(), name, &error_number), ReadError::kNotAFile) << name;
  }
  SegmentReader reader;
  int error_number = 0;
  EXPECT_EQ(reader.open(directory.fd(), "missing", &error_number), ReadError::kCannotOpen);
  EXPECT_EQ(error_number, ENOENT);
}

TEST(DeviceSnapshot, UsedIsNeverBelowZeroWhateverTheFigures) {
  DeviceSnapshot device;
  device.gauges.driver_bytes = -5;
  EXPECT_EQ(device.used_bytes(), 0u);
  device.gauges.linear_bytes = INT64_MAX;
  device.gauges.vmm_bytes = INT64_MAX;
  static_cast<void>(device.used_bytes());
  device.gauges = {};
  device.gauges.pool_bytes = 7;
  device.gauges.managed_bytes = 1;
  EXPECT_EQ(device.used_bytes(), 8u);
}

}  // namespace
}  // namespace gpucap::wire::test
