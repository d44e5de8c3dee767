// NVML without its header: see card_nvml.h. Its binary interface is stable; only what is used here is declared.
#include "tools/top/card_nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "wire/segment_reader.h"

namespace gpucap::tools {
namespace {

constexpr int kSuccess = 0;
constexpr unsigned kMostCards = 64;
constexpr unsigned kMemoryVersion2 = 2;

struct Memory {
  unsigned long long total, free, used;
};
struct Memory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

using Start = int (*)();
using Count = int (*)(unsigned*);
using HandleByIndex = int (*)(unsigned, void**);
using HandleByUuid = int (*)(const char*, void**);
using Text = int (*)(void*, char*, unsigned);
using AskMemory = int (*)(void*, Memory*);
using AskMemory2 = int (*)(void*, Memory2*);

template <class Function>
Function as(void* address) {
  Function function = nullptr;
  static_assert(sizeof(function) == sizeof(address));
  std::memcpy(&function, &address, sizeof(function));
  return function;
}

std::string text_of(void* ask, void* handle) {
  char text[96] = {};
  if (ask == nullptr || as<Text>(ask)(handle, text, sizeof(text)) != kSuccess) return "";
  text[sizeof(text) - 1] = '\0';
  return wire::clean_text(text);
}

}  // namespace

std::string uuid_text(const CardUuid& uuid, const char* prefix) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = prefix;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

std::optional<CardUuid> parse_uuid(const std::string& text) {
  CardUuid uuid = {};
  size_t digits = 0;
  for (size_t i = text.find('-') == std::string::npos ? 0 : text.find('-') + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-') continue;
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (value < 0 || digits >= 32) return std::nullopt;
    uuid[digits / 2] = static_cast<uint8_t>(uuid[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 32 ? std::optional(uuid) : std::nullopt;
}

CardNvml::CardNvml() {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    why_ = "no NVML here";
    return;
  }
  void* start = function("nvmlInit_v2");
  if (const int error = start != nullptr ? as<Start>(start)() : -1; error != kSuccess) {
    why_ = "NVML does not start, error " + std::to_string(error);
    return;
  }
  started_ = true;
  void* ask_count = function("nvmlDeviceGetCount_v2");
  void* ask_handle = function("nvmlDeviceGetHandleByIndex_v2");
  unsigned count = 0;
  if (ask_count == nullptr || ask_handle == nullptr || as<Count>(ask_count)(&count) != kSuccess) {
    why_ = "NVML does not tell its cards";
    return;
  }
  for (unsigned i = 0; i < std::min(count, kMostCards); ++i) {
    void* handle = nullptr;
    if (as<HandleByIndex>(ask_handle)(i, &handle) != kSuccess) continue;
    CardUse card;
    card.number = i;
    card.name = text_of(function("nvmlDeviceGetName"), handle);
    if (const auto uuid = parse_uuid(text_of(function("nvmlDeviceGetUUID"), handle))) card.uuid = *uuid;
    cards_.push_back(std::move(card));
    handles_.push_back(handle);
  }
}

CardNvml::~CardNvml() {
  if (void* stop = started_ ? function("nvmlShutdown") : nullptr; stop != nullptr) as<Start>(stop)();
  if (library_ != nullptr) dlclose(library_);
}

void* CardNvml::function(const char* name) const { return library_ != nullptr ? dlsym(library_, name) : nullptr; }

void CardNvml::refresh() {
  for (size_t i = 0; i < cards_.size(); ++i) ask(i);
}

void CardNvml::ask(size_t index) {
  CardUse& card = cards_[index];
  card.total_bytes.reset();
  card.used_bytes.reset();
  if (void* ask_2 = function("nvmlDeviceGetMemoryInfo_v2"); ask_2 != nullptr) {
    Memory2 memory = {};
    memory.version = static_cast<unsigned>(sizeof(memory)) | kMemoryVersion2 << 24;
    if (as<AskMemory2>(ask_2)(handles_[index], &memory) == kSuccess) {
      card.total_bytes = memory.total;
      card.used_bytes = memory.used;
      card.reserved_bytes = memory.reserved;
      return;
    }
  }
  Memory memory = {};
  void* ask_1 = function("nvmlDeviceGetMemoryInfo");
  if (ask_1 == nullptr || as<AskMemory>(ask_1)(handles_[index], &memory) != kSuccess) return;
  card.total_bytes = memory.total;
  card.used_bytes = memory.used;
}

void CardNvml::want(const CardUuid& uuid) {
  if (!started_ || std::find(asked_for_.begin(), asked_for_.end(), uuid) != asked_for_.end()) return;
  for (const CardUse& card : cards_) {
    if (card.uuid == uuid) return;
  }
  asked_for_.push_back(uuid);
  void* ask_handle = function("nvmlDeviceGetHandleByUUID");
  if (ask_handle == nullptr || cards_.size() >= kMostCards) return;
  for (const char* prefix : {"MIG-", "GPU-"}) {
    void* handle = nullptr;
    if (as<HandleByUuid>(ask_handle)(uuid_text(uuid, prefix).c_str(), &handle) != kSuccess) continue;
    CardUse card;
    card.number = cards_.empty() ? 0 : cards_.back().number + 1;
    card.name = text_of(function("nvmlDeviceGetName"), handle);
    card.uuid = uuid;
    cards_.push_back(std::move(card));
    handles_.push_back(handle);
    ask(cards_.size() - 1);
    return;
  }
}

}  // namespace gpucap::tools
