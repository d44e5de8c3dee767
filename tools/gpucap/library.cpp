// Where libgpucap.so is: see library.h.
#include "tools/gpucap/library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tools/gpucap/elf.h"

namespace gpucap::tools {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLibrary = "libgpucap.so";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Beside the library there may be its stand-in for 32-bit programs, which does nothing.
bool is_library(const fs::path& path) {
  ProgramFacts facts;
  return is_file(path) && inspect_program(path.string(), &facts) && facts.kind == ProgramFacts::Kind::kElf &&
         facts.is_64_bit;
}

std::vector<fs::path> folders_in(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().compare(0, prefix.size(), prefix) == 0 && entry->is_directory(ignored)) {
      folders.push_back(entry->path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

std::string find_library(std::string* tried) {
  std::error_code error;
  const char* variable = std::getenv("GPUCAP_LIBRARY");
  if (variable != nullptr && variable[0] != '\0') {
    *tried = std::string("GPUCAP_LIBRARY=") + variable;
    return is_file(variable) ? fs::absolute(variable, error).string() : "";
  }
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  *tried = (here / kLibrary).string() + ", " + (here.parent_path() / "lib*" / kLibrary).string();
  if (is_file(here / kLibrary)) return (here / kLibrary).string();
  for (const fs::path& lib : folders_in(here.parent_path(), "lib")) {
    if (is_library(lib / kLibrary)) return (lib / kLibrary).string();
    for (const fs::path& below : folders_in(lib, "")) {
      if (is_library(below / kLibrary)) return (below / kLibrary).string();
    }
  }
  return "";
}

}  // namespace gpucap::tools
