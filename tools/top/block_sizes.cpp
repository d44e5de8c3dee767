// Live blocks from the event log: see block_sizes.h.
#include "tools/top/block_sizes.h"

namespace gpucap::tools {
namespace {

constexpr size_t kMostRefusals = 8;
constexpr uint64_t kSmallestClass = 4096;

uint64_t class_of(uint64_t bytes) {
  uint64_t at_most = kSmallestClass;
  while (at_most < bytes && at_most < (UINT64_C(1) << 62)) at_most *= 4;
  return at_most;
}

}  // namespace

void BlockSizes::feed(const gpucap_event& event) {
  if (event.device != device_) return;
  switch (event.operation) {
    case GPUCAP_OP_CHARGE:
      if (event.address != 0) blocks_[{event.kind, event.address}] = event.bytes;
      break;
    case GPUCAP_OP_RELEASE:
      // Of one kind as a rule; a block that was freed by another family's function is still gone.
      if (blocks_.erase({event.kind, event.address}) != 0) break;
      for (uint8_t kind = 0; kind <= GPUCAP_KIND_CONTEXT; ++kind) blocks_.erase({kind, event.address});
      break;
    case GPUCAP_OP_REFUSE:
    case GPUCAP_OP_FAIL:
      refusals_.push_front(event);
      if (refusals_.size() > kMostRefusals) refusals_.pop_back();
      break;
    default:
      break;
  }
}

std::vector<SizeClassLine> BlockSizes::classes() const {
  std::map<uint64_t, SizeClassLine> found;
  for (const auto& [address, bytes] : blocks_) {
    SizeClassLine& line = found[class_of(bytes)];
    line.at_most_bytes = class_of(bytes);
    ++line.blocks;
    line.bytes += bytes;
  }
  std::vector<SizeClassLine> lines;
  for (const auto& [size, line] : found) lines.push_back(line);
  return lines;
}

}  // namespace gpucap::tools
