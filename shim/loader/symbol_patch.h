// Points an exported name of a loaded library at another function, in the library's own symbol table in memory: whoever
// looks the name up from then on, in whatever way, finds the other. For plugins opened with RTLD_DEEPBIND, which look
// past preloaded libraries. Calls that are bound already keep what they have.
#pragma once

namespace gpucap::loader {

// False if the library does not define the name, or its table cannot be written.
bool point_symbol_at(void* library, const char* name, const void* function);

}  // namespace gpucap::loader
