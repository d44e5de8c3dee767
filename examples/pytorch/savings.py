"""How much memory do activation checkpointing and mixed precision save?

Run: bash examples/pytorch/savings.sh
Look at: the peak without a cap, and the smallest cap under which the same training still runs to its end.
"""
import argparse

import torch
from torch.utils.checkpoint import checkpoint

WIDTH, BLOCKS, BATCH = 1024, 8, 16384


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(),
                                          torch.nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        return x + self.layers(x)


class Net(torch.nn.Module):
    def __init__(self, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.blocks = torch.nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = torch.nn.Linear(WIDTH, 10)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(x)


parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--amp", action="store_true")
options = parser.parse_args()
torch.manual_seed(0)
model = Net(options.checkpoint).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda", enabled=options.amp)
inputs = torch.randn(BATCH, WIDTH, device="cuda")
targets = torch.randint(10, (BATCH,), device="cuda")
for step in range(4):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16, enabled=options.amp):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print("loss %.3f, peak in tensors %d MiB" % (loss.item(), torch.cuda.max_memory_allocated() / 2**20))
