#!/usr/bin/env bash
# Out of memory and on with half the batch, with each of PyTorch's allocators: see out_of_memory.py.
#
# Run: bash examples/pytorch/out_of_memory.sh
set -eu
cd "$(dirname "$0")"
for setting in "" expandable_segments:True backend:cudaMallocAsync; do
  echo "== ${setting:-default}"
  PYTORCH_ALLOC_CONF=$setting PYTORCH_CUDA_ALLOC_CONF=$setting gpucap run --limit 4G -- python3 out_of_memory.py
done
