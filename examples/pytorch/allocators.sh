#!/usr/bin/env bash
# The same work under the same cap with each setting of PyTorch's allocator: see allocators.py.
# PYTORCH_ALLOC_CONF is today's name of PYTORCH_CUDA_ALLOC_CONF, which older versions of PyTorch know alone.
#
# Run: bash examples/pytorch/allocators.sh
set -eu
cd "$(dirname "$0")"
for setting in "" expandable_segments:True backend:cudaMallocAsync max_split_size_mb:128 garbage_collection_threshold:0.6; do
  PYTORCH_ALLOC_CONF=$setting PYTORCH_CUDA_ALLOC_CONF=$setting GPUCAP_LOG=error gpucap run --limit 4G -- python3 allocators.py
done
