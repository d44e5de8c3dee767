"""One of two processes that reduce over NCCL, each on a card of its own and under its own cap. argv: cap, rank, a file to
meet at. Rests with the other: the harness lets both go on only when both have been looked at."""
import sys

import torch
import torch.distributed as dist

import report

cap, rank, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.cuda.set_device(rank)
report.check("mem_get_info shows the cap", torch.cuda.mem_get_info(rank)[1] == cap, torch.cuda.mem_get_info(rank))
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
report.ready("start")
dist.init_process_group("nccl", init_method="file://" + meeting, rank=rank, world_size=2)
data = torch.full((64 << 20,), float(rank + 1), device="cuda")
dist.all_reduce(data)
torch.cuda.synchronize()
report.check("the sum is right", float(data[0]) == 3.0 and float(data[-1]) == 3.0, float(data[0]))
report.ready("reduced")
for _ in range(10):
    data.fill_(1.0)
    dist.all_reduce(data)
pieces = [torch.empty(1 << 20, device="cuda") for _ in range(2)]
dist.all_gather(pieces, data[: 1 << 20].contiguous())
torch.cuda.synchronize()
report.check("the gathered sum is right", float(pieces[1][0]) == 2.0, float(pieces[1][0]))
report.ready("reduced ten times and gathered")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    dist.all_reduce(data)
data.fill_(1.0)
graph.replay()
torch.cuda.synchronize()
report.check("a captured sum is right", float(data[0]) == 2.0, float(data[0]))
report.ready("replayed a captured sum")
graph.reset()  # a communicator waits for its captured work when it goes
del graph
dist.barrier()
dist.destroy_process_group()
