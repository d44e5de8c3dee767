"""How do I cap each card of a program that uses several? DistributedDataParallel: a process for each card.

Run: gpucap run --limit 0=6G,1=4G -- python3 -m torch.distributed.run --nproc-per-node 2 --master-addr 127.0.0.1 --master-port 29531 examples/pytorch/distributed.py
Look at: each process has the limit of its own card, and "used" is more than "reserved": NCCL's buffers are not PyTorch's.
"""
import os

import torch
import torch.distributed as dist

MIB, GIB = 2**20, 2**30
card = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(card)
dist.init_process_group("nccl", device_id=torch.device("cuda", card))
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[card])
optimizer = torch.optim.Adam(model.parameters())
inputs = torch.randn(8192, 1024, device="cuda")
for step in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
for turn in range(dist.get_world_size()):  # one after the other, for lines in order
    dist.barrier()
    if turn == dist.get_rank():
        print("card %d of %.1f GiB: loss %.4f, peak in tensors %d MiB, reserved %d MiB, used %d MiB" %
              (card, total / GIB, loss.item(), torch.cuda.max_memory_allocated() / MIB, torch.cuda.memory_reserved() / MIB,
               (total - free) / MIB), flush=True)
dist.barrier()
dist.destroy_process_group()
