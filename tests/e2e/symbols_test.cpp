// Look-ups of symbols are answered as without gpucap, except that the driver's hooked functions are gpucap's.
#include <regex>
#include <set>
#include <sstream>

#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

const std::set<std::string>& hooked() {
  static const std::set<std::string> names = {
#define GPUCAP_HOOK(name, params, args, role, verb) #name,
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
  };
  return names;
}

// What a run without gpucap printed, with gpucap's functions where it stands in for the driver's.
std::string with_hooks(const std::string& output) {
  static const std::regex driver_function("libcuda\\.so\\.1:(\\w+)");
  std::string result;
  auto from = output.begin();
  for (std::sregex_iterator match(output.begin(), output.end(), driver_function), end; match != end; ++match) {
    result.append(from, output.begin() + match->position());
    result += hooked().count((*match)[1]) != 0 ? "libgpucap.so:" + (*match)[1].str() : match->str();
    from = output.begin() + match->position() + match->length();
  }
  return result.append(from, output.end());
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Two things that cannot be had, and harm nobody: the object that dlerror() names when a runtime's function is asked
// for with its version and is not there; and a null for a plugin that asks for the next driver function where the
// loader would not look, but a driver is loaded: a library that the plugin's loader needs might see it, and what is
// found must be ours.
std::string without_known_differences(const std::string& line) {
  if (line.find("asks next for cuda") != std::string::npos && line.find("the plugin") != std::string::npos &&
      line.find('@') != std::string::npos)
    return "";
  if (line.find("cudaMalloc@") != std::string::npos) return line.substr(0, line.find(" | "));
  return line;
}
bool is_hook_on_the_safe_side(const std::string& with, const std::string& expected) {
  const std::string asked = expected.substr(0, expected.find(" = "));
  const std::string name = asked.substr(asked.rfind(' ') + 1);
  return asked.find("the plugin asks next for ") != std::string::npos &&
         expected.find(" = null") != std::string::npos && with == asked + " = libgpucap.so:" + name + " | no error";
}

// Line by line, so that a failure shows the look-up and not two long texts.
void expect_same_lines(const std::string& with, const std::string& expected) {
  std::istringstream a(with), b(expected);
  std::string line_a, line_b;
  size_t lines = 0, wrong = 0;
  const bool from_the_start = expected.find("at first: the program asks the driver") != std::string::npos;
  while (std::getline(b, line_b)) {
    ++lines;
    if (!std::getline(a, line_a)) line_a = "(nothing)";
    line_a = without_known_differences(line_a);
    line_b = without_known_differences(line_b);
    if (line_a == line_b ||
        ((from_the_start || line_b.rfind("at first", 0) != 0) && is_hook_on_the_safe_side(line_a, line_b)))
      continue;
    if (++wrong <= 40) ADD_FAILURE() << "with gpucap: " << line_a << "\nexpected:    " << line_b;
  }
  EXPECT_FALSE(std::getline(a, line_a)) << "more than without gpucap: " << line_a;
  EXPECT_EQ(wrong, 0u) << "of " << lines << " lines";
}

class Symbols : public World {
 protected:
  // Runs the command with and without gpucap and compares what they print; what it printed without is returned.
  std::string compare(const std::vector<std::string>& command, const std::string& folder = FAKE_CUDA_FOLDER) {
    Environment plain = bare(), preloaded = capped("4G");
    plain["LD_LIBRARY_PATH"] = preloaded["LD_LIBRARY_PATH"] = folder + ":" + FAKE_CUDA_FOLDER + "/runtime";
    Child without(command, plain), with(command, preloaded);
    EXPECT_EQ(without.finish(), 0) << without.out << without.err;
    EXPECT_EQ(with.finish(), 0) << with.out << with.err;
    expect_same_lines(with.out, with_hooks(without.out));
    EXPECT_EQ(with.err, without.err);
    return without.out;
  }
};

class LookUps : public Symbols, public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(LookUps, AreAnsweredAsWithoutUsButWithOurHooks) {
  const std::string output = compare({std::get<0>(GetParam()), "lookups", std::get<1>(GetParam())});
  EXPECT_GT(count_of(output, " = "), 600u);
  EXPECT_GT(count_of(output, " = libcuda.so.1:cuMemAlloc_v2"), 3u)
      << "the driver was found, so that there is something to swap";
  EXPECT_GT(count_of(output, "undefined symbol"), 100u);
  EXPECT_GT(count_of(output, "libc.so.6"), 50u);
  EXPECT_EQ(count_of(output, "curl_easy_init gives 1001"), 3u);
}
INSTANTIATE_TEST_SUITE_P(
    Symbols, LookUps,
    testing::Values(std::make_tuple(PLAIN_PROBE, PLAIN_PLUGIN), std::make_tuple(PLAIN_PROBE, DRIVER_PLUGIN),
                    std::make_tuple(DRIVER_PROBE, PLAIN_PLUGIN), std::make_tuple(DRIVER_PROBE, DRIVER_PLUGIN)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param) == std::string(PLAIN_PROBE) ? "Plain" : "Driver") +
             (std::get<1>(test.param) == std::string(PLAIN_PLUGIN) ? "ProgramPlainPlugin" : "ProgramDriverPlugin");
    });

TEST_F(Symbols, ProcAddressGivesWhatTheDriverGivesButOurHooksAsVeryFirstCall) {
  const std::string output = compare({PLAIN_PROBE, "proc", PROC_TABLE});
  EXPECT_GT(count_of(output, "\n"), 40000u);
  EXPECT_GT(count_of(output, "libcuda.so.1:cuMemAlloc_v2"), 20u);
  EXPECT_GT(count_of(output, "libcuda.so.1:cuMemAllocAsync_ptsz"), 5u);
  EXPECT_GT(count_of(output, ": 500 null / 500 1 null"), 20u) << "names that no driver has";
  EXPECT_GT(count_of(output, ": 500 null / 500 2 null"), 100u) << "names that are younger than the version";
}

TEST_F(Symbols, OldDriverIsAskedForNothingThatItLacks) {
  const std::string output = compare({PLAIN_PROBE, "proc", PROC_TABLE}, std::string(FAKE_CUDA_FOLDER) + "/old");
  EXPECT_GT(count_of(output, "libcuda.so.1:cuMemAlloc_v2"), 20u);
  EXPECT_EQ(count_of(output, "libcuda.so.1:cuMemAllocAsync"), 0u);
  EXPECT_NE(output.find(" / -1 -5 untouched"), std::string::npos) << "no cuGetProcAddress_v2 to be found";
  compare({PLAIN_PROBE, "lookups", DRIVER_PLUGIN}, std::string(FAKE_CUDA_FOLDER) + "/old");
}

TEST_F(Symbols, DriverWhoseProcAddressDoesNotKnowItsSuccessor) {
  setenv("FAKE_CUDA_NO_PROC_V2", "1", 1);
  compare({PLAIN_PROBE, "proc", PROC_TABLE});
  unsetenv("FAKE_CUDA_NO_PROC_V2");
}

TEST_F(Symbols, ExportTableFirstOfAllDoesNotHang) {
  const std::string output = compare({PLAIN_PROBE, "export-table"});
  EXPECT_EQ(value_of(output, "result"), "500") << output;
}

class Interposers : public World, public testing::WithParamInterface<bool> {};

TEST_P(Interposers, WorkBesideUsAndAreCappedOnce) {
  const bool first = GetParam();
  Environment environment = capped("4G");
  environment["LD_PRELOAD"] =
      first ? std::string(INTERPOSER) + ":" + GPUCAP_LIBRARY : std::string(GPUCAP_LIBRARY) + ":" + INTERPOSER;
  Child child(client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), environment);
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_EQ(value_of(child.out, "taken"), "6") << "charged once";
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  expect_true_figures(child.pid);
  child.tell("\n");
  child.tell("\n");
  EXPECT_EQ(child.finish(), 0) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "interposer_trouble"), "");
  EXPECT_EQ(value_of(child.out, "wrapped_mallocs"), "some");
  // Six taken, one refused, one again. Behind us nobody calls it: ours call the driver itself.
  EXPECT_EQ(value_of(child.out, "wrapped_driver_allocs"), first ? "8" : "0");
  EXPECT_EQ(value_of(child.out, "interposer_early"), "libgpucap.so:cuMemFree_v2");
}

TEST_P(Interposers, FindNoDriverInAProgramWithoutOne) {
  Environment with = capped("4G"), without = bare();
  without["LD_PRELOAD"] = INTERPOSER;
  with["LD_PRELOAD"] =
      GetParam() ? std::string(INTERPOSER) + ":" + GPUCAP_LIBRARY : std::string(GPUCAP_LIBRARY) + ":" + INTERPOSER;
  Child a({PLAIN_PROBE, "nothing"}, without), b({PLAIN_PROBE, "nothing"}, with);
  EXPECT_EQ(b.finish(), a.finish());
  EXPECT_EQ(value_of(a.out, "interposer_early"), "null");
  EXPECT_EQ(b.out, a.out);
}
INSTANTIATE_TEST_SUITE_P(Symbols, Interposers, testing::Bool(),
                         [](const auto& test) { return test.param ? "First" : "Last"; });

TEST_F(Symbols, PluginThatWasLinkedWithTheDriverIsCapped) {
  Child child({PLAIN_PROBE, "take", DRIVER_PLUGIN, std::to_string(512 * kMiB), "20"}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "taken"), "6");
  EXPECT_EQ(value_of(child.out, "result"), "2");
  expect_true_figures(child.pid);
}

TEST_F(Symbols, PluginWithAStaticRuntimeIsCapped) {
  Child child({PLAIN_PROBE, "take", STATIC_PLUGIN, std::to_string(512 * kMiB), "20"}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "taken"), "6");
  EXPECT_EQ(value_of(child.out, "result"), "2");
  expect_true_figures(child.pid);
}

}  // namespace
}  // namespace gpucap::e2e
