// The driver API as this fake exports it: <cuda.h> with every old spelling as a plain identifier, so that the compiler
// checks each definition against NVIDIA's prototype, and with default visibility for all of them (the rest is hidden).
// Included by every file that defines an exported function. Also builds against the headers of CUDA 12.
#pragma once

#pragma GCC visibility push(default)
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

// Exported by a driver of CUDA 13, and declared by its header only.
extern "C" {
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx);
CUresult cuCtxSynchronize_v2(CUcontext ctx);
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool);
}
#pragma GCC visibility pop
