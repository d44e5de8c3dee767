// Where libgpucap.so is: for the launcher.
#pragma once

#include <string>

namespace gpucap::tools {

// GPUCAP_LIBRARY, else beside this program, else in ../lib* of it (one folder deep too, as multi-architecture systems
// have it). Returns an absolute path, or an empty one with the places that were tried.
std::string find_library(std::string* tried);

}  // namespace gpucap::tools
