// Any bytes as a segment's file: refused by name, or read into bounded figures and clean text. The reader never trusts
// what another process wrote.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz.h"
#include "wire/segment_reader.h"
#include "wire/segment_writer.h"

namespace gpucap::fuzz {
namespace {

using namespace gpucap::wire;

// A folder with one file, gone when the program ends.
class Scratch {
 public:
  Scratch() {
    std::string text = (std::filesystem::temp_directory_path() / "gpucap-fuzz-XXXXXX").string();
    if (mkdtemp(text.data()) == nullptr) std::abort();
    path_ = text;
    directory_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file_ = open((path_ + "/segment").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (directory_ < 0 || file_ < 0) std::abort();
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void store(const uint8_t* data, size_t bytes) const {
    const bool stored = ftruncate(file_, static_cast<off_t>(bytes)) == 0 &&
                        pwrite(file_, data, bytes, 0) == static_cast<ssize_t>(bytes);
    require(stored, "the scratch file can be written");
  }
  [[nodiscard]] int directory() const { return directory_; }

 private:
  std::string path_;
  int directory_ = -1;
  int file_ = -1;
};

void require_clean(const std::string& text) { require(clean_text(text) == text, "text of a segment is clean"); }

void drain(const SegmentReader& reader, uint64_t capacity, bool writer_is_dead) {
  FileRingReader ring = reader.ring();
  gpucap_event event = {};
  uint64_t count = 0;
  RingStatus status = RingStatus::kEvent;
  while ((status = ring.next(writer_is_dead, &event)) == RingStatus::kEvent) ++count;
  require(count <= capacity, "a ring that stands still has at most its capacity");
  require(!writer_is_dead || status != RingStatus::kNotYet, "nobody waits for the dead");
}

}  // namespace

std::vector<std::string> seeds() {
  static constexpr const char* kNames[] = {"none", "cuMemAlloc_v2", "cuMemFree_v2"};
  std::string directory = (std::filesystem::temp_directory_path() / "gpucap-seed-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  SegmentSpec spec;
  spec.directory = directory.c_str();
  spec.device_count = 2;
  spec.api_names = kNames;
  spec.api_count = 3;
  spec.ring_capacity = 16;
  spec.run_id = "run-7";
  spec.version = "1.2.3";
  spec.group = "team";
  SegmentWriter writer;
  int error_number = 0;
  require(writer.create(spec, &error_number) == SegmentError::kNone, "a segment can be made to start from");
  for (uint64_t i = 0; i < 20; ++i) {
    gpucap_event event = {};
    event.bytes = i;
    static_cast<void>(writer.ring().publish(event));
  }
  std::ifstream file(writer.path(), std::ios::binary);
  std::vector<std::string> all = {std::string(std::istreambuf_iterator<char>(file), {}), "", "GPUCAP"};
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  require(!all[0].empty(), "a segment can be read to start from");
  return all;
}

std::vector<std::string> pieces() {
  std::vector<std::string> all;
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{64}, uint64_t{4096}, uint64_t{1} << 31,
                                uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 63}) {
    std::string bytes(sizeof(number), '\0');
    __builtin_memcpy(bytes.data(), &number, sizeof(number));
    all.push_back(bytes);
    all.push_back(bytes.substr(0, 4));
  }
  all.push_back("\x1b[31m");
  return all;
}

}  // namespace gpucap::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace gpucap::fuzz;
  static const Scratch scratch;
  scratch.store(data, bytes);
  SegmentReader reader;
  int error_number = 0;
  if (reader.open(scratch.directory(), "segment", &error_number) != ReadError::kNone) return 0;
  for (const std::string& name : reader.api_names()) require_clean(name);
  static_cast<void>(reader.liveness());
  SegmentSnapshot snapshot;
  if (reader.snapshot(&snapshot, &error_number) != ReadError::kNone) return 0;
  require(snapshot.devices.size() <= GPUCAP_WIRE_MAX_DEVICES, "a segment has so many devices at most");
  for (const DeviceSnapshot& device : snapshot.devices) {
    require_clean(device.name);
    require(device.counters.size() <= reader.api_names().size(), "each counter has a name");
    static_cast<void>(device.used_bytes());
  }
  require_clean(snapshot.run_id);
  require_clean(snapshot.version);
  require_clean(snapshot.group);
  for (const std::string& argument : snapshot.command) require_clean(argument);
  drain(reader, snapshot.ring_capacity, false);
  drain(reader, snapshot.ring_capacity, true);
  return 0;
}
