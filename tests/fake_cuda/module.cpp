// See module.h. Launches are in launch.cpp.
#include "tests/fake_cuda/module.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/fake_cuda/stream.h"

namespace fake {

struct Image {
  uint64_t code_bytes = 0;
  uint64_t local_bytes = 0;  // a thread
  std::vector<std::string> kernels;
};

struct Library;

// What a CUfunction (in a module) or a CUkernel (in a library, with no module) points to.
struct Callable {
  std::string name;
  Module* module = nullptr;
  Library* library = nullptr;
};

struct Module {
  Image image;
  Context* context = nullptr;
  Library* library = nullptr;
  uint64_t charged = 0;
  std::vector<std::unique_ptr<Callable>> functions;
};

struct Library {
  Image image;
  std::map<Context*, Module*> modules;
  std::vector<std::unique_ptr<Callable>> kernels;
};

namespace {

struct Registry {
  std::set<Library*> libraries;
  std::set<Callable*> callables;
};
Registry& registry() {
  static Registry& the = *new Registry;
  return the;
}

bool parse(const void* data, Image* image) {
  if (data == nullptr || std::memcmp(data, "FAKE", 4) != 0) return false;
  std::istringstream words(static_cast<const char*>(data) + 4);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (key == "code") {
      image->code_bytes = std::strtoull(value.c_str(), nullptr, 10);
    } else if (key == "local") {
      image->local_bytes = std::strtoull(value.c_str(), nullptr, 10);
    } else if (key == "kernels") {
      std::istringstream names(value);
      for (std::string name; std::getline(names, name, ',');) image->kernels.push_back(name);
    } else {
      return false;
    }
  }
  return true;
}

std::vector<std::unique_ptr<Callable>> make_callables(const Image& image, Module* module, Library* library) {
  std::vector<std::unique_ptr<Callable>> made;
  for (const std::string& name : image.kernels) {
    made.push_back(std::make_unique<Callable>(Callable{name, module, library}));
    registry().callables.insert(made.back().get());
  }
  return made;
}

void forget(const std::vector<std::unique_ptr<Callable>>& callables) {
  for (const auto& callable : callables) registry().callables.erase(callable.get());
}

CUresult load(Driver& driver, const Image& image, Library* library, Module** out) {
  Context* const context = current_context();
  const uint64_t charge = whole_blocks(image.code_bytes);
  if (!driver.take(context->device, charge)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* const module = new Module{image, context, library, charge, {}};
  module->functions = make_callables(image, module, library);
  context->modules.insert(module);
  *out = module;
  return CUDA_SUCCESS;
}

void unload(Driver& driver, Module* module) {
  driver.give(module->context->device, module->charged);
  module->context->modules.erase(module);
  if (module->library != nullptr) module->library->modules.erase(module->context);
  forget(module->functions);
  delete module;
}

CUresult load_data(Driver& driver, CUmodule* out, const void* data) {
  Image image;
  Module* module = nullptr;
  if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!parse(data, &image)) return CUDA_ERROR_INVALID_IMAGE;
  const CUresult result = load(driver, image, nullptr, &module);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUmodule>(module);
  return result;
}

bool read_file(const char* path, std::string* text) {
  std::ifstream file(path == nullptr ? "" : path, std::ios::binary);
  text->assign(std::istreambuf_iterator<char>(file), {});
  return file.good() || !text->empty();
}

CUresult load_library(CUlibrary* out, const void* data) {
  Image image;
  if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!parse(data, &image)) return CUDA_ERROR_INVALID_IMAGE;
  auto* const library = new Library{image, {}, {}};
  library->kernels = make_callables(image, nullptr, library);
  registry().libraries.insert(library);
  *out = reinterpret_cast<CUlibrary>(library);
  return CUDA_SUCCESS;
}

Library* as_library(CUlibrary handle) {
  auto* const library = reinterpret_cast<Library*>(handle);
  return registry().libraries.count(library) != 0 ? library : nullptr;
}

// The library's module in the current context, loaded if it is not yet.
CUresult module_of(Driver& driver, Library* library, Module** out) {
  const auto found = library->modules.find(current_context());
  if (found != library->modules.end()) return *out = found->second, CUDA_SUCCESS;
  const CUresult result = load(driver, library->image, library, out);
  if (result == CUDA_SUCCESS) library->modules[current_context()] = *out;
  return result;
}

CUresult unload_library(Driver& driver, Library* library) {
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  while (!library->modules.empty()) unload(driver, library->modules.begin()->second);
  forget(library->kernels);
  registry().libraries.erase(library);
  delete library;
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult find_by_name(const std::vector<std::unique_ptr<Callable>>& callables, const char* name, Handle* out) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& callable : callables) {
    if (callable->name == name) return *out = reinterpret_cast<Handle>(callable.get()), CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

bool in_current_context(Module* module) { return current_context()->modules.count(module) != 0; }

template <class Handle>
Callable* as_callable(Handle handle) {
  auto* const callable = reinterpret_cast<Callable*>(handle);
  return registry().callables.count(callable) != 0 ? callable : nullptr;
}

}  // namespace

CUresult prepare_launch(Driver& driver, CUfunction function) {
  const Callable* const callable = as_callable(function);
  if (callable == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Module* module = callable->module;
  if (module == nullptr) {
    const CUresult loaded = module_of(driver, callable->library, &module);
    if (loaded != CUDA_SUCCESS) return loaded;
  }
  Context* const context = module->context;
  const uint64_t local = whole_blocks(saturating_product(module->image.local_bytes, kThreadsOnDevice));
  if (local <= context->local_charged) return CUDA_SUCCESS;  // one area serves all kernels of a context
  if (!driver.take(context->device, local - context->local_charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  context->local_charged = local;
  return CUDA_SUCCESS;
}

void unload_all_modules(Driver& driver, Context* context) {
  while (!context->modules.empty()) unload(driver, *context->modules.begin());
}

}  // namespace fake

using namespace fake;

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return enter("cuModuleLoadData", Need::kContext, [&](Driver& d) { return load_data(d, module, image); });
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*, void**) {
  return enter("cuModuleLoadDataEx", Need::kContext, [&](Driver& d) { return load_data(d, module, image); });
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return enter("cuModuleLoadFatBinary", Need::kContext, [&](Driver& d) { return load_data(d, module, image); });
}
CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return enter("cuModuleLoad", Need::kContext, [&](Driver& d) {
    std::string text;
    return read_file(path, &text) ? load_data(d, module, text.c_str()) : CUDA_ERROR_FILE_NOT_FOUND;
  });
}
CUresult cuModuleUnload(CUmodule handle) {
  return enter("cuModuleUnload", Need::kContext, [&](Driver& d) {
    auto* const module = reinterpret_cast<Module*>(handle);
    if (!in_current_context(module) || module->library != nullptr) return CUDA_ERROR_INVALID_HANDLE;
    unload(d, module);
    return CUDA_SUCCESS;
  });
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return enter("cuModuleGetFunction", Need::kContext, [&](Driver&) {
    auto* const module = reinterpret_cast<Module*>(handle);
    return in_current_context(module) ? find_by_name(module->functions, name, function) : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  return enter("cuModuleGetFunctionCount", Need::kContext, [&](Driver&) {
    auto* const module = reinterpret_cast<Module*>(handle);
    if (!in_current_context(module)) return CUDA_ERROR_INVALID_HANDLE;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return enter("cuModuleGetLoadingMode", Need::kInitialised, [&](Driver&) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned int, CUlibraryOption*,
                           void**, unsigned int) {
  return enter("cuLibraryLoadData", Need::kInitialised, [&](Driver&) { return load_library(library, code); });
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned int,
                               CUlibraryOption*, void**, unsigned int) {
  return enter("cuLibraryLoadFromFile", Need::kInitialised, [&](Driver&) {
    std::string text;
    return read_file(path, &text) ? load_library(library, text.c_str()) : CUDA_ERROR_FILE_NOT_FOUND;
  });
}
CUresult cuLibraryUnload(CUlibrary library) {
  return enter("cuLibraryUnload", Need::kInitialised,
               [&](Driver& d) { return unload_library(d, as_library(library)); });
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  return enter("cuLibraryGetModule", Need::kContext, [&](Driver& d) {
    Library* const library = as_library(handle);
    Module* module = nullptr;
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = module_of(d, library, &module);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUmodule>(module);
    return result;
  });
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return enter("cuLibraryGetKernel", Need::kInitialised, [&](Driver&) {
    Library* const library = as_library(handle);
    return library == nullptr ? CUDA_ERROR_INVALID_HANDLE : find_by_name(library->kernels, name, kernel);
  });
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  return enter("cuLibraryGetKernelCount", Need::kInitialised, [&](Driver&) {
    const Library* const library = as_library(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(library->kernels.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
  return enter("cuKernelGetFunction", Need::kContext, [&](Driver& d) {
    const Callable* const kernel = as_callable(handle);
    Module* module = nullptr;
    if (kernel == nullptr || kernel->library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = module_of(d, kernel->library, &module);
    return result == CUDA_SUCCESS ? find_by_name(module->functions, kernel->name.c_str(), function) : result;
  });
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return enter("cuFuncGetModule", Need::kInitialised, [&](Driver&) {
    const Callable* const function = as_callable(handle);
    if (function == nullptr || function->module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(function->module);
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return enter("cuFuncGetAttribute", Need::kInitialised, [&](Driver&) {
    const Callable* const function = as_callable(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Image& image = function->module != nullptr ? function->module->image : function->library->image;
    *value = 0;
    if (attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) *value = static_cast<int>(image.local_bytes);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = 1024;
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncLoad(CUfunction function) {
  return enter("cuFuncLoad", Need::kInitialised,
               [&](Driver&) { return as_callable(function) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS; });
}
