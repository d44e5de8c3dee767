// Turns segments, NVML and the event log into the screen's model, look after look, and remembers what only time shows:
// histories, events gone by. Used by show_screen; draws nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/top/block_sizes.h"
#include "tools/top/card_nvml.h"
#include "tools/top/live_segments.h"
#include "tools/top/view_model.h"
#include "tools/top/view_state.h"

namespace gpucap::tools {

struct CollectorOptions {
  std::string directory;  // --dir
  std::set<int> pids;
  double seconds_per_look = 1;
  uint64_t keep_seconds = kKeepDeadSeconds;  // how long ended processes stay listed
};

class Collector {
 public:
  explicit Collector(CollectorOptions options);

  // Reads everything that can have changed. False: nothing at all could be looked into; trouble() says why.
  bool look();
  // The parts that depend on what is selected, from what was read already. Called after look() and after keys.
  void focus(const ViewState& state);

  [[nodiscard]] const ScreenModel& model() const { return model_; }
  [[nodiscard]] const std::vector<std::string>& trouble() const { return directories_.errors; }

  // Whose row it is; nullptr once it is gone.
  [[nodiscard]] const LiveSegment* segment_of(const std::string& row_key, uint32_t* ordinal);
  [[nodiscard]] const Directories& directories() const { return directories_; }

 private:
  void add_rows(const LiveSegment& live);
  ProcessRow row_of(const LiveSegment& live, const wire::DeviceSnapshot& device);
  CardView* card_of(const wire::DeviceSnapshot& device);
  void remember_histories();
  void remember_events();
  void choose_events(const ViewState& state);
  void fill_details(const ViewState& state);
  EventLine event_line_of(const gpucap_event& raw, const EventOrigin& origin) const;

  CollectorOptions options_;
  LiveSegments segments_;
  std::unique_ptr<CardNvml> nvml_;
  Directories directories_;
  ScreenModel model_;
  uint64_t next_sweep_ns_ = 0;
  std::map<CardUuid, uint32_t> cards_by_uuid_;     // index into model_.cards
  std::map<uint32_t, uint32_t> cards_by_ordinal_;  // likewise, where a process tells no UUID
  struct History {
    std::deque<uint64_t> used_bytes;
    uint64_t look_number = 0;  // when its row was last there
  };
  std::unordered_map<std::string, History> histories_;  // by row key
  uint64_t look_number_ = 0;
  std::deque<TailEvent> events_;
  std::deque<TailEvent> troubles_;

  // Of the process whose details are open.
  std::string detailed_key_;
  std::optional<BlockSizes> blocks_;
  std::optional<wire::FileRingReader> blocks_ring_;
};

}  // namespace gpucap::tools
