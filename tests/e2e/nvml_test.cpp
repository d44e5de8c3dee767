// What programs under the library are told by NVML, compared with the same program without it and with the machine.
#include <algorithm>

#include "tests/e2e/world.h"
#include "tests/fake_cuda/cards.h"

namespace gpucap::e2e {
namespace {

constexpr uint64_t kCard = 16 * kGiB;

class Nvml : public World {
 protected:
  Environment with(const std::string& limit, const Environment& more = {}) {
    Environment environment = capped(limit);
    for (const auto& [name, value] : more) environment[name] = value;
    return environment;
  }
  // What the program prints; it must end well and say nothing on stderr.
  std::string output(const Environment& environment, const std::vector<std::string>& steps,
                     const std::string& way = "dlsym") {
    std::vector<std::string> command = {way == "linked" ? NVML_LINKED_CLIENT : NVML_CLIENT, way};
    command.insert(command.end(), steps.begin(), steps.end());
    Child child(command, environment);
    EXPECT_EQ(child.finish(), 0) << child.out << child.err;
    EXPECT_EQ(child.err, "");
    return child.out;
  }
  // What a capped device shows: total, free, used.
  static std::string shown(uint64_t total, uint64_t free_bytes, uint64_t used) {
    const auto text = [](uint64_t n) { return std::to_string(n); };
    return "0 " + text(total) + " " + text(free_bytes) + " " + text(used) + " | 0 2000028 " + text(total) + " 0 " +
           text(free_bytes) + " " + text(used);
  }
  static std::string untouched() { return shown(kCard, kCard, 0); }
  static std::vector<std::string> all_handles() {
    std::vector<std::string> handles;
    for (int i = 0; i < 2; ++i) {
      handles.push_back("index:" + std::to_string(i));
      handles.push_back("uuid:" + fake::card_uuid_text(i));
      handles.push_back("pci:" + fake::card_pci_text(i, 8));
    }
    return handles;
  }
  static std::vector<std::string> show(std::vector<std::string> steps, const std::vector<std::string>& handles) {
    for (const std::string& handle : handles) {
      steps.push_back("show");
      steps.push_back(handle);
    }
    return steps;
  }
};

TEST_F(Nvml, EveryWayAndEveryHandleShowsTheCap) {
  for (const std::string way : {"linked", "dlsym", "default"}) {
    const std::string out = output(with("0=2G,1=4G"), show({"init"}, all_handles()), way);
    for (const std::string& handle : all_handles()) {
      const bool first = handle == all_handles()[0] || handle == all_handles()[1] || handle == all_handles()[2];
      const uint64_t cap = first ? 2 * kGiB : 4 * kGiB;
      EXPECT_EQ(value_of(out, handle), shown(cap, cap, 0)) << way << " " << handle;
    }
  }
}

// With somebody else on the cards, whose memory counts where nothing is capped.
TEST_F(Nvml, WithoutALimitEverythingIsAsWithoutTheLibrary) {
  Child other({NVML_CLIENT, "dlsym", "init", "cuda", "3000", "wait"}, bare());
  ASSERT_TRUE(other.wait_for("READY"));
  const std::vector<std::string> steps = show({"init", "show", "index:1", "cuda", "100"}, all_handles());
  const std::string bare_output = output(bare(), steps);
  EXPECT_EQ(output(with(""), steps), bare_output);
  EXPECT_EQ(output(with("2G", {{"GPUCAP_DISABLE", "1"}}), steps), bare_output);
  const uint64_t used = 2 * kContext + 3100 * kMiB;
  EXPECT_EQ(value_of(bare_output, "index:0"), shown(kCard, kCard - used, used));
}

TEST_F(Nvml, ADeviceWithoutALimitIsUntouchedBesideOneWithALimit) {
  Child other({NVML_CLIENT, "dlsym", "init", "cuda", "3000", "wait"}, bare());
  ASSERT_TRUE(other.wait_for("READY"));
  for (const auto& steps : {show({"init"}, all_handles()), show({"init", "cuda", "100"}, all_handles())}) {
    const std::string bare_output = output(bare(), steps), out = output(with("0=2G"), steps);
    EXPECT_EQ(value_of(out, "index:1"), value_of(bare_output, "index:1"));
    EXPECT_NE(value_of(out, "index:0"), value_of(bare_output, "index:0"));
  }
}

TEST_F(Nvml, UsedIsWhatThisProcessHoldsAndAgreesWithTheDriver) {
  Child other({NVML_CLIENT, "dlsym", "init", "cuda", "3000", "wait"}, bare());
  ASSERT_TRUE(other.wait_for("READY"));
  const std::string out =
      output(with("4G"), show({"init", "show", "index:0", "cuda", "300"}, {"uuid:" + fake::card_uuid_text(0)}));
  const uint64_t used = kContext + 300 * kMiB, left = 4 * kGiB - used;
  EXPECT_EQ(value_of(out, "index:0"), shown(4 * kGiB, 4 * kGiB, 0)) << "before CUDA";
  EXPECT_EQ(value_of(out, "uuid:" + fake::card_uuid_text(0)), shown(4 * kGiB, left, used));
  EXPECT_EQ(value_of(out, "cuda0"), "0 0 " + std::to_string(left) + " " + std::to_string(4 * kGiB));
}

TEST_F(Nvml, ManagedMemoryIsUsed) {
  const std::string out = output(with("4G"), {"init", "cuda", "0", "managed", "500", "show", "index:1"});
  EXPECT_EQ(value_of(out, "managed"), "0");
  const uint64_t used = kContext + 500 * kMiB;  // the last context made is of device 1
  EXPECT_EQ(value_of(out, "index:1"), shown(4 * kGiB, 4 * kGiB - used, used));
}

TEST_F(Nvml, FreeIsNoMoreThanTheCardHas) {
  Child other({NVML_CLIENT, "dlsym", "init", "cuda", "14000", "wait"}, bare());
  ASSERT_TRUE(other.wait_for("READY"));
  const std::string out = output(with("4G"), {"init", "show", "index:0"});
  EXPECT_EQ(value_of(out, "index:0"), shown(4 * kGiB, kCard - kContext - 14000 * kMiB, 0));
}

TEST_F(Nvml, OverTheCapNothingIsFree) {
  const std::string out = output(with("2G"), {"init", "cuda", "100", "behind", "3000", "show", "index:1"});
  EXPECT_EQ(value_of(out, "behind"), "0");
  EXPECT_EQ(value_of(out, "index:1"), shown(2 * kGiB, 0, kContext + 3100 * kMiB));
}

TEST_F(Nvml, ACapAboveTheCardLeavesItsTotal) {
  EXPECT_EQ(value_of(output(with("64G"), {"init", "show", "index:0"}), "index:0"), untouched());
}

TEST_F(Nvml, PercentIsOfTheCard) {
  EXPECT_EQ(value_of(output(with("25%"), {"init", "show", "index:0"}), "index:0"), shown(4 * kGiB, 4 * kGiB, 0));
}

// Whatever CUDA_VISIBLE_DEVICES says, a program is told the same before it starts CUDA as after.
TEST_F(Nvml, OrdinalsAreThoseOfCudaBeforeAndAfterItStarts) {
  const std::string zero = fake::card_uuid_text(0), one = fake::card_uuid_text(1);
  struct Case {
    std::string visible;
    uint64_t first_gib, second_gib;  // 16: not visible, untouched
  };
  const Case cases[] = {{"0", 2, 16},
                        {"1", 16, 2},
                        {"1,0", 4, 2},
                        {"0,1", 2, 4},
                        {zero, 2, 16},
                        {one, 16, 2},
                        {one + "," + zero, 4, 2},
                        {"GPU-f1", 16, 2},
                        {"GPU-f1,GPU-f0", 4, 2},
                        {"GPU-f1,0", 4, 2},
                        {"0,-1,1", 2, 16},
                        {"0,7,1", 2, 16},
                        {" 1 , 0 ", 4, 2}};
  for (const Case& each : cases) {
    const Environment environment =
        with("0=2G,1=4G", {{"CUDA_VISIBLE_DEVICES", each.visible}, {"GPUCAP_LOG", "error"}});
    // Where one device is hidden, the limit of a device that is not there is told.
    const uint64_t gib[] = {each.first_gib, each.second_gib};
    const std::string before = output(environment, show({"init"}, {"index:0", "index:1"}));
    const std::string after = output(environment, show({"init", "cuda", "0"}, {"index:0", "index:1"}));
    for (size_t i = 0; i < 2; ++i) {
      const std::string handle = "index:" + std::to_string(i);
      const uint64_t total = gib[i] * kGiB, used = gib[i] == 16 ? 0 : kContext;
      EXPECT_EQ(value_of(before, handle), shown(total, total, 0)) << each.visible << " " << handle;
      EXPECT_EQ(value_of(after, handle), shown(total, total - used, used)) << each.visible << " " << handle;
    }
  }
}

TEST_F(Nvml, WhereCudaSeesNoDeviceNothingIsCapped) {
  for (const std::string visible : {"", "-1", "0,0", "GPU-dead", "none"}) {
    const std::string out =
        output(with("2G", {{"CUDA_VISIBLE_DEVICES", visible}}), show({"init", "cuda", "0"}, {"index:0", "index:1"}));
    EXPECT_EQ(value_of(out, "cuInit"), "100") << visible;
    EXPECT_EQ(value_of(out, "index:0"), untouched()) << visible;
    EXPECT_EQ(value_of(out, "index:1"), untouched()) << visible;
  }
}

TEST_F(Nvml, ALimitByUuidHoldsWithoutCuda) {
  const std::string out = output(with(fake::card_uuid_text(1) + "=2G,*=4G"), show({"init"}, {"index:0", "index:1"}));
  EXPECT_EQ(value_of(out, "index:0"), shown(4 * kGiB, 4 * kGiB, 0));
  EXPECT_EQ(value_of(out, "index:1"), shown(2 * kGiB, 2 * kGiB, 0));
}

TEST_F(Nvml, ALimitThatCannotBeReadIsNoMemoryAndSilent) {
  EXPECT_EQ(value_of(output(with("lots"), {"init", "show", "index:0"}), "index:0"), shown(0, 0, 0));
}

TEST_F(Nvml, ErrorsAreNvmlsOwn) {
  const std::vector<std::string> steps = {"odd",  "index:0", "show", "index:0", "init",     "odd",  "index:0",
                                          "cuda", "0",       "odd",  "index:0", "shutdown", "show", "index:0"};
  // The library keeps NVML started for its own figures once CUDA is used, so the last steps are for programs without.
  const std::vector<std::string> without_cuda = {"odd",     "index:0",  "show", "index:0", "init", "odd",
                                                 "index:0", "shutdown", "show", "index:0", "odd",  "index:0"};
  const std::string bare_output = output(bare(), without_cuda);
  EXPECT_EQ(output(with("2G"), without_cuda), bare_output);
  EXPECT_NE(bare_output.find("odd=0 2 2 2 2 2 25 5e5e5e5e5e5e5e5e 5e5e5e5e"), std::string::npos) << bare_output;
  EXPECT_EQ(value_of(output(with("2G"), steps), "odd"), value_of(bare_output, "odd"));
}

TEST_F(Nvml, TheListOfProcessesIsUntouched) {
  const std::vector<std::string> steps = {"init", "cuda", "300", "processes", "index:0"};
  const std::string bare_output = output(bare(), steps);
  EXPECT_EQ(value_of(output(with("4G"), steps), "processes"), value_of(bare_output, "processes"));
  EXPECT_EQ(value_of(bare_output, "processes"), "0 1:" + std::to_string(kContext + 300 * kMiB));
}

TEST_F(Nvml, AProgramWithoutCudaIsLeftAlone) {
  const std::string out = output(with("2G"), {"init", "show", "index:0", "look"});
  EXPECT_EQ(value_of(out, "index:0"), shown(2 * kGiB, 2 * kGiB, 0));
  EXPECT_EQ(value_of(out, "loaded"), "cuda:0 nvml:1");
  EXPECT_NE(access((folder_ + "/segments").c_str(), F_OK), 0) << "a segment was made";
}

TEST_F(Nvml, AskingAboutADeviceThatIsNotUsedDoesNotSetItUp) {
  const std::string out = output(with("2G"), {"init", "cuda-init", "show", "index:0"});
  EXPECT_EQ(value_of(out, "cuInit"), "0");
  EXPECT_EQ(value_of(out, "index:0"), shown(2 * kGiB, 2 * kGiB, 0));
  EXPECT_NE(access((folder_ + "/segments").c_str(), F_OK), 0) << "a segment was made";
}

TEST_F(Nvml, WithoutNvmlItIsNotFound) {
  const std::string bare_output = output(bare(), {"look"}, "nothing");
  EXPECT_EQ(output(with("2G"), {"look"}, "nothing"), bare_output);
  EXPECT_EQ(value_of(bare_output, "lookup").rfind("0 ", 0), 0u) << bare_output;
}

TEST_F(Nvml, AForkedChildIsShownTheCapAndNothingOfItsParents) {
  const std::string out = output(with("2G"), {"init", "cuda", "100", "fork", "show", "index:0"});
  const uint64_t card_free = kCard - kContext - 100 * kMiB;
  EXPECT_EQ(value_of(out, "index:0"), shown(2 * kGiB, std::min(2 * kGiB, card_free), 0));
}

TEST_F(Nvml, ADeviceIsIdentifiedOnce) {
  std::vector<std::string> handles;
  for (int i = 0; i < 20; ++i) handles.insert(handles.end(), {"index:0", "index:1"});
  output(with("2G", {{"FAKE_CUDA_LOG", call_log()}}), show({"init"}, handles));
  EXPECT_EQ(calls("nvmlDeviceGetUUID "), 2);
  EXPECT_EQ(calls("nvmlDeviceGetMemoryInfo"), 80) << "each query reaches NVML once";
}

// A search for its UUID would start every card before it in NVML.
TEST_F(Nvml, OfManyCardsOnlyTheOneInUseIsLookedFor) {
  output(with("2G", {{"FAKE_CUDA_LOG", call_log()}, {"CUDA_VISIBLE_DEVICES", "1"}}), {"init", "cuda", "100"});
  EXPECT_EQ(calls("nvmlDeviceGetHandleByPciBusId"), 1);
  EXPECT_EQ(calls("nvmlDeviceGetHandleBy"), 1) << "and in no other way";
}

TEST_F(Nvml, AMigInstanceIsCappedByItsHandleAndItsCardIsNot) {
  const std::string instance = "MIG-5a1b2c3d-0000-5000-8000-000000000009";
  const std::vector<std::string> steps = show({"init"}, {"index:0", "uuid:" + instance});
  const Environment here = {{"LD_LIBRARY_PATH", NVML_MIG_FOLDER}, {"CUDA_VISIBLE_DEVICES", instance}};
  Environment without = bare();
  for (const auto& [name, value] : here) without[name] = value;
  const std::string bare_output = output(without, steps);
  for (const std::string limit : {"2G", "0=2G", "25%", "MIG-5a1b=2G"}) {
    const std::string out = output(with(limit, here), steps);
    EXPECT_EQ(value_of(out, "uuid:" + instance), shown(2 * kGiB, 2 * kGiB, 0)) << limit;
    EXPECT_EQ(value_of(out, "index:0"), value_of(bare_output, "index:0")) << limit;
  }
  // A cap above the card: what the system has reserved stays, where it is shown.
  EXPECT_EQ(value_of(output(with("64G", here), steps), "uuid:" + instance),
            "0 8589934592 8589933592 0 | 0 2000028 8589934592 500 8589933092 0");
}

}  // namespace
}  // namespace gpucap::e2e
