// Linear, pitched and managed memory, and host memory, which no cap of device memory may count.
#include "way.h"

namespace ways {

CUresult free_linear(Value value) { return cuMemFree_v2(value); }
CUresult synchronize() { return cuCtxSynchronize(); }

namespace {

Way linear(const std::string& size, size_t bytes) {
  Way way;
  way.name = "cuMemAlloc_v2 " + size;
  way.step_bytes = bytes;
  way.take = [bytes](Value* out) { return cuMemAlloc_v2(out, bytes); };
  way.give_back = free_linear;
  return way;
}

// Millions of small blocks would take a minute: so most of the cap is filled beforehand.
Way linear_in_little_room(const std::string& size, size_t bytes) {
  Way way = linear(size, bytes);
  way.room_bytes = kBlock;
  way.most_takes = 2 * kBlock / bytes;
  return way;
}

Way pitched(const std::string& shape, size_t width, size_t height) {
  Way way;
  way.name = "cuMemAllocPitch_v2 " + shape;
  way.step_bytes = width * height;
  way.take = [width, height](Value* out) {
    size_t pitch = 0;
    return cuMemAllocPitch_v2(out, &pitch, width, height, 4);
  };
  way.give_back = free_linear;
  return way;
}

Way managed() {
  Way way;
  way.name = "cuMemAllocManaged, not touched";
  way.take = [](Value* out) { return cuMemAllocManaged(out, kBlock, CU_MEM_ATTACH_GLOBAL); };
  way.give_back = free_linear;
  return way;
}

// The spellings of CUDA 3.1, with 32-bit sizes and pointers; drivers turn them down in 64-bit contexts.
Way first_spelling() {
  Way way;
  way.name = "cuMemAlloc (first spelling)";
  way.optional = true;
  way.room_bytes = kGib / 2;  // their pointers reach no further
  way.take = [](Value* out) {
    auto narrow = static_cast<unsigned>(*out);
    const CUresult result = call_by_name("cuMemAlloc", &narrow, static_cast<unsigned>(kBlock));
    *out = (*out & ~Value{0xffffffff}) | narrow;
    return result;
  };
  way.give_back = [](Value value) { return call_by_name("cuMemFree", static_cast<unsigned>(value)); };
  return way;
}

Way first_pitched_spelling() {
  Way way;
  way.name = "cuMemAllocPitch (first spelling)";
  way.optional = true;
  way.room_bytes = kGib / 2;  // their pointers reach no further
  way.take = [](Value* out) {
    auto narrow = static_cast<unsigned>(*out);
    unsigned pitch = 0;
    const CUresult result = call_by_name("cuMemAllocPitch", &narrow, &pitch, 65536u, unsigned{kBlock / 65536}, 4u);
    *out = (*out & ~Value{0xffffffff}) | narrow;
    return result;
  };
  way.give_back = [](Value value) { return call_by_name("cuMemFree", static_cast<unsigned>(value)); };
  return way;
}

Way host() {
  Way way;
  way.name = "cuMemHostAlloc (host memory)";
  way.refusal = Refusal::kNever;
  way.room_bytes = kBlock;  // were it counted, the third piece would be refused
  way.most_takes = 8;
  way.take = [](Value* out) { return cuMemHostAlloc(reinterpret_cast<void**>(out), kBlock, 0); };
  way.give_back = [](Value value) { return cuMemFreeHost(reinterpret_cast<void*>(value)); };
  return way;
}

}  // namespace

void add_linear_ways(Ways& ways) {
  ways.push_back(linear_in_little_room("512 B", 512));
  ways.push_back(linear("100 KiB", 100 * 1024));
  ways.push_back(linear("1 MiB", kMib));
  ways.push_back(linear("1 MiB + 1 B", kMib + 1));
  ways.push_back(linear("2 MiB", 2 * kMib));
  ways.push_back(linear("3 MiB + 1 B", 3 * kMib + 1));
  ways.push_back(linear("64 MiB", kBlock));
  ways.push_back(linear("1 GiB", kGib));
  ways.push_back(linear("5 GiB", 5 * kGib));
  ways.push_back(linear("64 MiB, eight threads", kBlock));
  ways.back().threads = 8;
  ways.push_back(first_spelling());
  ways.push_back(first_pitched_spelling());
  ways.push_back(pitched("64 KiB x 1024", 65536, 1024));
  ways.push_back(pitched("1000 B x 20001", 1000, 20001));
  ways.push_back(managed());
  ways.push_back(host());
}

}  // namespace ways
