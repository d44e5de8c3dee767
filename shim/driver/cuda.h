// The one way in which this project includes <cuda.h>: with every spelling as the library exports it (cuMemAlloc is the
// first version, cuMemAlloc_v2 the second), so that the compiler checks our rows against the header's own prototypes.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

static_assert(CUDA_VERSION >= 12000, "gpucap needs the headers of CUDA 12 or 13");
#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;
#endif
#if CUDA_VERSION < 12030
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
#endif
