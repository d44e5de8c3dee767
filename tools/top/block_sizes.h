// Follows one process's event log from its beginning: which blocks live, by size class, and what was refused last.
// Pure; fed by the collector while the details of the process are open. Knows only what the log still held.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "tools/top/view_model.h"
#include "wire/layout.h"

namespace gpucap::tools {

class BlockSizes {
 public:
  // Of one device only; the rest is not looked at.
  explicit BlockSizes(uint8_t device) : device_(device) {}

  void feed(const gpucap_event& event);
  [[nodiscard]] uint64_t blocks() const { return blocks_.size(); }
  // Classes by powers of four from 4 KiB up; those without a block are left out.
  [[nodiscard]] std::vector<SizeClassLine> classes() const;
  [[nodiscard]] const std::deque<gpucap_event>& refusals() const { return refusals_; }  // latest first, a few

 private:
  uint8_t device_;
  std::map<std::pair<uint8_t, uint64_t>, uint64_t> blocks_;  // bytes by kind and address
  std::deque<gpucap_event> refusals_;
};

}  // namespace gpucap::tools
