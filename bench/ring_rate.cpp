// Whether a reader of the event log keeps up: a child process publishes events into a segment of its own at a set rate,
// and this process reads them as gpucap-top does, through the file, without a pause. One JSON object on stdout.
//   ring_rate DIR [rate=EVENTS_A_SECOND] [seconds=S]      rate 0: as fast as the child can
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "wire/segment_reader.h"
#include "wire/segment_writer.h"

namespace gpucap::bench {
static_assert(offsetof(gpucap_device, look_count) == 216, "bench/single.py reads it there");

namespace {

constexpr uint64_t kBurst = 50;        // events between two looks at the clock
constexpr uint32_t kCapacity = 16384;  // of the library's own ring

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// The child: says a byte when its segment is there, waits for one, publishes, and says how many.
int publish(const char* directory, double rate, double seconds, int from_parent, int to_parent) {
  const char* const names[] = {"none", "cuMemAlloc_v2"};
  wire::SegmentSpec spec;
  spec.directory = directory;
  spec.device_count = 1;
  spec.api_names = names;
  spec.api_count = 2;
  spec.ring_capacity = kCapacity;
  static wire::SegmentWriter segment;
  int error_number = 0;
  const bool made = segment.create(spec, &error_number) == wire::SegmentError::kNone;
  char word = made ? 'r' : 'f';
  if (write(to_parent, &word, 1) != 1 || read(from_parent, &word, 1) != 1 || !made) return 1;
  wire::RingWriter ring = segment.ring();
  gpucap_event event{};
  event.api = 1;
  uint64_t published[2] = {0, 0};  // and how long that took
  const uint64_t start = now_ns();
  const auto whole = static_cast<uint64_t>(seconds * 1e9);
  for (uint64_t passed = 0; passed < whole; passed = now_ns() - start) {
    if (rate != 0 && static_cast<double>(published[0]) > rate * 1e-9 * static_cast<double>(passed)) continue;
    for (uint64_t i = 0; i < kBurst; ++i) {
      event.address = ++published[0];
      ring.publish(event);
    }
  }
  published[1] = now_ns() - start;
  return write(to_parent, published, sizeof(published)) == sizeof(published) ? 0 : 1;
}

int measure(const char* directory, double rate, double seconds) {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(publish(directory, rate, seconds, down[0], up[1]));
  char word = 0;
  if (child < 0 || read(up[0], &word, 1) != 1 || word != 'r') return 1;
  wire::SegmentReader reader;
  const int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = opendir(directory);
  const std::string prefix = std::to_string(child) + ".";
  bool opened = false;
  while (const dirent* entry = entries == nullptr ? nullptr : readdir(entries)) {
    int error_number = 0;
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) == 0)
      opened = reader.open(folder, entry->d_name, &error_number) == wire::ReadError::kNone;
    if (opened) break;
  }
  if (!opened || write(down[1], &word, 1) != 1) return 1;
  wire::FileRingReader ring = reader.ring();
  gpucap_event event;
  uint64_t read_count = 0, published[2] = {0, 0};
  if (fcntl(up[0], F_SETFL, O_NONBLOCK) != 0) return 1;
  const uint64_t start = now_ns();
  bool over = false;
  for (wire::RingStatus status = wire::RingStatus::kCaughtUp;; status = ring.next(over, &event)) {
    if (status == wire::RingStatus::kEvent) {
      ++read_count;
    } else if (status == wire::RingStatus::kFailed || over) {
      break;
    } else {
      over = read(up[0], published, sizeof(published)) == sizeof(published);  // then once more to the end
    }
  }
  const uint64_t taken = now_ns() - start;
  int status = 0;
  waitpid(child, &status, 0);
  std::printf(
      "{\"asked_per_second\": %.0f, \"published\": %llu, \"publishing_ns\": %llu, \"read\": %llu, \"lost\": %llu, "
      "\"reading_ns\": %llu}\n",
      rate, static_cast<unsigned long long>(published[0]), static_cast<unsigned long long>(published[1]),
      static_cast<unsigned long long>(read_count), static_cast<unsigned long long>(ring.lost()),
      static_cast<unsigned long long>(taken));
  return published[0] != 0 && read_count + ring.lost() == published[0] ? 0 : 1;
}

}  // namespace
}  // namespace gpucap::bench

int main(int count, char** arguments) {
  double rate = 5e6, seconds = 1;
  for (int i = 2; i < count; ++i) {
    if (std::strncmp(arguments[i], "rate=", 5) == 0) rate = std::atof(arguments[i] + 5);
    if (std::strncmp(arguments[i], "seconds=", 8) == 0) seconds = std::atof(arguments[i] + 8);
  }
  if (count < 2) {
    std::fprintf(stderr, "usage: ring_rate DIR [rate=N] [seconds=S]\n");
    return 2;
  }
  return gpucap::bench::measure(arguments[1], rate, seconds);
}
