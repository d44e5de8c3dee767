// Models for the tests of the screen's pure parts: a machine that has a bit of everything.
#pragma once

#include <cstdint>
#include <string>

#include "tools/top/view_model.h"

namespace gpucap::tools {

inline constexpr uint64_t kTestMiB = uint64_t{1} << 20;
inline constexpr uint64_t kTestGiB = uint64_t{1} << 30;

inline ProcessRow test_row(int pid, uint64_t used_bytes, uint64_t limit_bytes, const std::string& command) {
  ProcessRow row;
  row.pid = pid;
  row.key = "/dev/shm/gpucap-0/" + std::to_string(pid) + ".gpucap#0";
  row.user = "ann";
  row.command = command;
  row.used_bytes = used_bytes;
  row.peak_bytes = used_bytes + 10 * kTestMiB;
  if (limit_bytes != UINT64_MAX) row.limit_bytes = limit_bytes;
  row.physical_bytes = 141 * kTestGiB;
  row.driver_bytes = 518 * kTestMiB;
  row.live_count = 17;
  row.age_seconds = 95;
  row.can_signal = true;
  row.can_limit = true;
  return row;
}

inline CardView test_card(uint32_t number, uint64_t data_bytes, uint64_t others_bytes) {
  CardView card;
  card.number = number;
  card.name = "NVIDIA H200";
  card.total_bytes = 141 * kTestGiB;
  card.data_bytes = data_bytes;
  card.driver_bytes = kTestGiB;
  card.used_bytes = data_bytes + card.driver_bytes + others_bytes;
  card.processes = 2;
  card.capped_processes = 2;
  card.caps_bytes = 96 * kTestGiB;
  return card;
}

inline EventLine test_event(uint8_t operation, int pid, uint64_t bytes) {
  EventLine event;
  event.time = "12:34:55.123";
  event.pid = pid;
  event.operation = operation;
  event.call = "cudaMalloc > cuMemAlloc_v2";
  event.bytes = bytes;
  event.used_after_bytes = 3 * kTestGiB;
  return event;
}

inline ScreenModel test_model() {
  ScreenModel model;
  model.time = "12:34:56";
  model.cards = {test_card(0, 40 * kTestGiB, 12 * kTestGiB), test_card(1, 8 * kTestGiB, 0)};
  model.cards[1].caps_bytes = 160 * kTestGiB;

  ProcessRow training = test_row(4711, 40 * kTestGiB, 41 * kTestGiB, "python train.py --data /data/images");
  training.refused_count = 6;
  training.parent_pid = 4700;
  training.parent_name = "torchrun";
  training.group = "team";
  training.group_limit_bytes = 64 * kTestGiB;
  training.group_used_bytes = 45 * kTestGiB;
  ProcessRow second = test_row(4712, 5 * kTestGiB, 41 * kTestGiB, "python train.py --data /data/images");
  second.card = 1;
  second.parent_pid = 4700;
  second.parent_name = "torchrun";
  second.group = "team";
  second.group_limit_bytes = 64 * kTestGiB;
  second.group_used_bytes = 45 * kTestGiB;
  second.waiting_count = 2;
  ProcessRow child = test_row(4800, 3 * kTestGiB, UINT64_MAX, "./simulate \xe8\xa8\x93\xe7\xb7\xb4");
  child.user = "a-rather-long-name";
  child.parent_pid = 4711;
  child.parent_name = "python";
  child.can_limit = false;
  ProcessRow ended = test_row(900, 2 * kTestGiB, 4 * kTestGiB, "./render scene.blend");
  ended.alive = false;
  ended.how_ended = "killed";
  ended.ended_seconds_ago = 184;
  ended.can_signal = false;
  model.rows = {second, ended, child, training};

  for (uint64_t i = 0; i < 40; ++i) model.history.push_back(i * kTestGiB);
  for (uint64_t i = 0; i < 20; ++i) model.history.push_back(40 * kTestGiB);
  model.events = {test_event(1, 4711, 256 * kTestMiB), test_event(2, 4712, 64 * kTestMiB),
                  test_event(3, 4711, kTestGiB)};
  model.events[2].refused_by = 1;
  model.advice =
      "No process uses CUDA under gpucap (looked in /dev/shm/gpucap-0). Start one with: gpucap run --limit 4G -- "
      "COMMAND";

  ProcessDetails more;
  more.key = training.key;
  more.card_name = "NVIDIA H200";
  more.version = "0.1.0";
  more.limit_source = "from its environment";
  more.truth = "as NVML tells";
  more.on_limit = "refuses";
  more.pid_in_namespace = 7;
  more.linear_bytes = 38 * kTestGiB;
  more.pool_bytes = kTestGiB;
  more.peak_seconds_ago = 12;
  more.refused_bytes = 6 * kTestGiB;
  more.events_written = 500;
  more.events_lost = 12;
  more.apis = {{"cuMemAlloc_v2", 210, 6, 52 * kTestGiB}, {"cuMemFree_v2", 193, 0, 14 * kTestGiB}};
  more.sizes = {{4096, 3, 3000}, {kTestMiB, 4, 3 * kTestMiB}, {16 * kTestGiB, 9, 38 * kTestGiB}};
  more.blocks_known = 16;
  more.refusals = {model.events[2]};
  model.details = more;
  return model;
}

}  // namespace gpucap::tools
