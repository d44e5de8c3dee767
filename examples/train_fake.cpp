// A program shaped like a training, for machines without a GPU: weights, gradients and optimizer state once,
// activations a step, a batch that doubles until the card is out of memory, a smaller batch after that, and on to the
// end. Memory and copies go to whatever libcuda.so.1 is found (the demonstration lets it find the fake driver); the
// arithmetic, a regression with two unknowns, is done on the CPU so that there is a loss to print. It reaches the
// driver as CUDA's own runtime does: one dlsym for cuGetProcAddress_v2, everything else through that. It knows nothing
// of gpucap.
#include <dlfcn.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

// The few declarations needed, so that this builds without CUDA's headers.
using Result = int;  // CUresult
using Device = int;
using Pointer = unsigned long long;  // CUdeviceptr
using Opaque = struct OpaqueHandle*;
constexpr Result kSuccess = 0;
constexpr Result kOutOfMemory = 2;
constexpr int kCudaVersion = 12000;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

struct Driver {
  Result (*init)(unsigned);
  Result (*get_device)(Device*, int);
  Result (*get_name)(char*, int, Device);
  Result (*total_memory)(size_t*, Device);
  Result (*retain_context)(Opaque*, Device);
  Result (*set_context)(Opaque);
  Result (*memory_info)(size_t*, size_t*);
  Result (*allocate)(Pointer*, size_t);
  Result (*release)(Pointer);
  Result (*allocate_async)(Pointer*, size_t, Opaque);
  Result (*release_async)(Pointer, Opaque);
  Result (*synchronize)();
  Result (*copy_in)(Pointer, const void*, size_t);
  Result (*copy_out)(void*, Pointer, size_t);
};

void require(Result result, const char* what) {
  if (result == kSuccess) return;
  std::printf("%s failed with CUDA error %d\n", what, result);
  std::exit(1);
}

template <typename Function>
void resolve(Result (*get_address)(const char*, void**, int, uint64_t, int*), const char* name, Function** function) {
  void* address = nullptr;
  int status = 0;
  require(get_address(name, &address, kCudaVersion, 0, &status), name);
  *function = reinterpret_cast<Function*>(address);
}

Driver open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("no CUDA driver: %s\n", dlerror());
    std::exit(1);
  }
  const auto get_address =
      reinterpret_cast<Result (*)(const char*, void**, int, uint64_t, int*)>(dlsym(library, "cuGetProcAddress_v2"));
  if (get_address == nullptr) {
    std::printf("this driver is older than CUDA 12\n");
    std::exit(1);
  }
  Driver driver{};
  resolve(get_address, "cuInit", &driver.init);
  resolve(get_address, "cuDeviceGet", &driver.get_device);
  resolve(get_address, "cuDeviceGetName", &driver.get_name);
  resolve(get_address, "cuDeviceTotalMem", &driver.total_memory);
  resolve(get_address, "cuDevicePrimaryCtxRetain", &driver.retain_context);
  resolve(get_address, "cuCtxSetCurrent", &driver.set_context);
  resolve(get_address, "cuMemGetInfo", &driver.memory_info);
  resolve(get_address, "cuMemAlloc", &driver.allocate);
  resolve(get_address, "cuMemFree", &driver.release);
  resolve(get_address, "cuMemAllocAsync", &driver.allocate_async);
  resolve(get_address, "cuMemFreeAsync", &driver.release_async);
  resolve(get_address, "cuCtxSynchronize", &driver.synchronize);
  resolve(get_address, "cuMemcpyHtoD", &driver.copy_in);
  resolve(get_address, "cuMemcpyDtoH", &driver.copy_out);
  return driver;
}

class Training {
 public:
  explicit Training(const Driver& driver) : driver_(driver) {
    // Weights, gradients and Adam's two moments, as a model of 48 million float parameters has them.
    for (Pointer& tensor : state_) require(driver_.allocate(&tensor, size_t{192} << 20), "allocating the model");
    write_weights();
  }

  ~Training() {
    for (const Pointer tensor : state_) driver_.release(tensor);
  }

  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // One step; false when the card was out of memory, with everything of the step given back.
  bool take_step(size_t batch, double* loss) {
    std::vector<Pointer> activations;
    bool fits = true;
    for (int layer = 0; layer < kLayers && fits; ++layer) {
      Pointer activation = 0;
      const Result result = driver_.allocate_async(&activation, batch * kActivationBytes, nullptr);
      fits = result == kSuccess;
      if (fits) activations.push_back(activation);
      if (!fits && result != kOutOfMemory) require(result, "cuMemAllocAsync");
    }
    if (fits) {
      *loss = learn();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a card would be computing
    }
    for (auto layer = activations.rbegin(); layer != activations.rend(); ++layer) {
      require(driver_.release_async(*layer, nullptr), "cuMemFreeAsync");
    }
    require(driver_.synchronize(), "cuCtxSynchronize");
    return fits;
  }

 private:
  static constexpr int kLayers = 4;
  static constexpr size_t kActivationBytes = size_t{256} << 10;  // a sample and layer

  void write_weights() { require(driver_.copy_in(state_[0], weights_, sizeof(weights_)), "cuMemcpyHtoD"); }

  // Gradient descent on y = 3x - 1; the weights live on the device between steps, as they would.
  double learn() {
    require(driver_.copy_out(weights_, state_[0], sizeof(weights_)), "cuMemcpyDtoH");
    double squares = 0;
    double slope = 0;
    double offset = 0;
    constexpr int kSamples = 64;
    for (int i = 0; i < kSamples; ++i) {
      const double x = uniform_(random_);
      const double miss = weights_[0] * x + weights_[1] - (3 * x - 1);
      squares += miss * miss;
      slope += 2 * miss * x;
      offset += 2 * miss;
    }
    weights_[0] -= 0.05 * slope / kSamples;
    weights_[1] -= 0.05 * offset / kSamples;
    write_weights();
    return squares / kSamples;
  }

  const Driver& driver_;
  Pointer state_[4] = {};
  double weights_[2] = {0, 0};
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> uniform_{-1, 1};
};

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 8;
  const Driver driver = open_driver();
  require(driver.init(0), "cuInit");
  Device device = 0;
  char name[128] = "";
  size_t total = 0;
  Opaque context = nullptr;
  require(driver.get_device(&device, 0), "cuDeviceGet");
  require(driver.get_name(name, sizeof(name), device), "cuDeviceGetName");
  require(driver.total_memory(&total, device), "cuDeviceTotalMem");
  require(driver.retain_context(&context, device), "cuDevicePrimaryCtxRetain");
  require(driver.set_context(context), "cuCtxSetCurrent");
  std::printf("card: %s, %.2f GiB\n", name, static_cast<double>(total) / kGib);

  Training training(driver);
  size_t batch = 128;
  int step = 0;
  double loss = 0;
  while (training.take_step(batch, &loss)) {
    std::printf("step %4d  batch %5zu  loss %.4f\n", ++step, batch, loss);
    batch *= 2;
  }
  size_t free_now = 0;
  require(driver.memory_info(&free_now, &total), "cuMemGetInfo");
  std::printf("out of memory at batch %zu; %.2f of %.2f GiB are free again\n", batch,
              static_cast<double>(free_now) / kGib, static_cast<double>(total) / kGib);
  batch /= 2;
  std::printf("recovered: going on with batch %zu\n", batch);

  const auto started = std::chrono::steady_clock::now();
  auto said = started;
  for (auto now = started; now - started < std::chrono::duration<double>(seconds);
       now = std::chrono::steady_clock::now()) {
    if (!training.take_step(batch, &loss)) {
      std::printf("out of memory at batch %zu, which had fitted before\n", batch);
      return 1;
    }
    ++step;
    if (now - said >= std::chrono::seconds(1)) {
      said = now;
      std::printf("step %4d  batch %5zu  loss %.4f\n", step, batch, loss);
    }
  }
  std::printf("done: %d steps, last loss %.6f\n", step, loss);
  return 0;
}
