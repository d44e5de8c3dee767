// Pages straight from the kernel for the core's tables.
#pragma once

#include "shim/core/pages.h"

namespace gpucap {
core::PageSource kernel_pages();
}  // namespace gpucap
