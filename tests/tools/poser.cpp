// Poses as a process that uses CUDA under gpucap, for the programs' tests: makes a segment with the writer's own code,
// fills it as its arguments say and then does what they say. Links the writer's half only.
//
//   poser DIR [device=N used=BYTES limit=BYTES driver=BYTES peak=BYTES refused=N uuid=0..255 waiting=BYTES
//             last_refused=BYTES by=N source=N policy=BYTES group_limit=BYTES group_used=BYTES
//             observed=N observed_bytes=BYTES waits=N waits_ns=NS failed=N physical=BYTES ...]
//             [group=NAME] [on_limit=N] [events=N] [latency=NS] [op=N bytes=BYTES] [dropped=N]
//             [then=wait|exit|end|kill]
//
// Figures go to the latest device named (0 at first); `uuid` fills all bytes of one. `op` publishes one event.
// POSER_DEVICES is how many there are (2). Prints "ready" once the segment is there.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "wire/files.h"
#include "wire/segment_writer.h"

namespace {

constexpr std::array<const char*, 4> kApiNames = {"none", "cuMemAlloc_v2", "cuMemFree_v2", "cudaMalloc"};

// Found as any reader finds it: through the region table.
gpucap_ring_header* ring_header(const gpucap::wire::SegmentWriter& writer) {
  char* base = static_cast<char*>(static_cast<void*>(writer.header()));
  for (const gpucap_region& region : writer.header()->regions) {
    if (region.type == GPUCAP_REGION_RING_HEADER) {
      return static_cast<gpucap_ring_header*>(static_cast<void*>(base + region.offset));
    }
  }
  std::abort();
}

uint32_t latency_ns = 0;  // of the events that follow

void publish_one(const gpucap::wire::SegmentWriter& writer, uint8_t operation, uint64_t bytes) {
  gpucap_event event = {};
  event.monotonic_ns = gpucap::wire::monotonic_now_ns();
  event.operation = operation;
  event.api = operation == GPUCAP_OP_RELEASE ? 2 : 1;
  event.bytes = bytes;
  event.refused_by = operation == GPUCAP_OP_REFUSE ? GPUCAP_REFUSED_BY_GROUP : GPUCAP_REFUSED_BY_NOTHING;
  event.result = operation == GPUCAP_OP_REFUSE || operation == GPUCAP_OP_FAIL ? 2 : 0;
  event.latency_ns = latency_ns;
  if (!writer.ring().publish(event)) std::abort();
}

void publish(const gpucap::wire::SegmentWriter& writer, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    gpucap_event event = {};
    event.monotonic_ns = gpucap::wire::monotonic_now_ns();
    event.thread = static_cast<uint32_t>(getpid());
    const bool refused = i % 4 == 3;
    event.operation = refused ? GPUCAP_OP_REFUSE : GPUCAP_OP_CHARGE;
    event.result = refused ? 2 : 0;
    event.kind = GPUCAP_KIND_LINEAR;
    event.api = 1;
    event.origin = i % 2 == 0 ? 3 : 0;
    event.bytes = (i + 1) << 20;
    event.address = refused ? 0 : 0x7f0000000000 + (i << 21);
    event.used_after = i << 21;
    event.latency_ns = latency_ns;
    if (!writer.ring().publish(event)) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  gpucap::wire::SegmentSpec spec;
  spec.directory = argv[1];
  const char* devices = std::getenv("POSER_DEVICES");
  spec.device_count = devices != nullptr ? static_cast<uint32_t>(std::atoi(devices)) : 2;
  spec.api_names = kApiNames.data();
  spec.api_count = kApiNames.size();
  spec.ring_capacity = 64;
  const char* run_id = std::getenv("GPUCAP_RUN_ID");
  spec.run_id = run_id != nullptr ? run_id : "";
  spec.version = "test";
  const char* group = std::getenv("GPUCAP_GROUP");
  spec.group = group != nullptr ? group : "";
  gpucap::wire::SegmentWriter writer;
  int error_number = 0;
  if (const auto error = writer.create(spec, &error_number); error != gpucap::wire::SegmentError::kNone) {
    std::fprintf(stderr, "poser: %s (%s)\n", gpucap::wire::to_text(error), std::strerror(error_number));
    return 3;
  }
  gpucap_device* device = writer.device(0);
  std::string then = "wait";
  uint8_t operation = 0;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string key = word.substr(0, word.find('='));
    const std::string value = word.substr(word.find('=') + 1);
    const long long number = std::atoll(value.c_str());
    if (key == "device") device = writer.device(static_cast<uint32_t>(number));
    if (key == "used") device->linear_bytes = number;
    if (key == "driver") device->driver_bytes = number;
    if (key == "limit") device->limit_bytes = static_cast<uint64_t>(number);
    if (key == "peak") device->peak_bytes = static_cast<uint64_t>(number);
    if (key == "refused") device->refused_count = static_cast<uint64_t>(number);
    if (key == "used") device->active = 1;
    if (key == "waiting") {
      device->waiting_count = 1;
      device->waiting_bytes = static_cast<uint64_t>(number);
      device->waiting_monotonic_ns = gpucap::wire::monotonic_now_ns();
    }
    if (key == "last_refused") {
      device->last_refused_bytes = static_cast<uint64_t>(number);
      device->last_refused_monotonic_ns = gpucap::wire::monotonic_now_ns();
      device->last_refused_api = 1;
      device->last_refused_origin = 3;
    }
    if (key == "by") device->last_refused_by = static_cast<uint32_t>(number);
    if (key == "group") std::strncpy(writer.header()->group, value.c_str(), sizeof(writer.header()->group) - 1);
    if (key == "latency") latency_ns = static_cast<uint32_t>(number);
    if (key == "op") operation = static_cast<uint8_t>(number);
    if (key == "bytes") publish_one(writer, operation, static_cast<uint64_t>(number));
    if (key == "on_limit") writer.header()->on_limit = static_cast<uint32_t>(number);
    if (key == "source") device->limit_source = static_cast<uint32_t>(number);
    if (key == "uuid") std::memset(device->uuid, static_cast<int>(number), sizeof(device->uuid));
    const struct {
      const char* key;
      uint64_t* to;
    } counts[] = {{"policy", &device->policy_limit_bytes},   {"physical", &device->physical_bytes},
                  {"group_used", &device->group_used_bytes}, {"group_limit", &device->group_limit_bytes},
                  {"observed", &device->observed_count},     {"observed_bytes", &device->observed_bytes},
                  {"waits", &device->waits_count},           {"waits_ns", &device->waits_ns},
                  {"failed", &device->failed_count}};
    for (const auto& count : counts) {
      if (key == count.key) *count.to = static_cast<uint64_t>(number);
    }
    if (key == "events") publish(writer, static_cast<uint64_t>(number));
    if (key == "dropped") ring_header(writer)->dropped = static_cast<uint64_t>(number);
    if (key == "then") then = value;
  }
  std::puts("ready");
  std::fflush(stdout);
  if (then == "kill") kill(getpid(), SIGKILL);
  if (then == "end") writer.mark_ended();
  if (then != "wait") return 0;
  // Until the test closes our input; a line makes one more event.
  for (char c = 0; read(0, &c, 1) == 1;) {
    if (c == '\n') publish(writer, 1);
  }
  return 0;
}
