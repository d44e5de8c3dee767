"""How do I cap each card of a program that uses several? DataParallel: one process, two cards.

Run: gpucap run --limit 0=6G,1=4G -- python3 examples/pytorch/data_parallel.py
Look at: each card has a size of its own, and card 0 holds more: it keeps the model and gathers the results.
"""
import torch

MIB, GIB = 2**20, 2**30
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
model = torch.nn.DataParallel(net, device_ids=[0, 1])
optimizer = torch.optim.Adam(model.parameters())
inputs = torch.randn(16384, 1024, device="cuda")
for step in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs)
    loss.backward()
    optimizer.step()
print("loss %.4f" % loss.item())
for card in range(2):
    torch.cuda.synchronize(card)
    free, total = torch.cuda.mem_get_info(card)
    print("card %d of %.1f GiB: peak in tensors %d MiB, reserved %d MiB, used %d MiB" %
          (card, total / GIB, torch.cuda.max_memory_allocated(card) / MIB, torch.cuda.memory_reserved(card) / MIB,
           (total - free) / MIB))
