"""My training slows down and dies after hours: does it leak GPU memory?

Run: bash examples/pytorch/leak.sh
Look at: LIVE and USED of the two rows, from one look to the next. The healthy loop keeps a number of each step, the leaking
one a tensor that stays on the card. (The first look may still see both warm up.)
"""
import sys
import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept, end = [], time.monotonic() + 8
while time.monotonic() < end:
    optimizer.zero_grad(set_to_none=True)
    output = model(torch.randn(512, 1024, device="cuda"))
    loss = output.square().mean()
    loss.backward()
    optimizer.step()
    kept.append(output if "--leak" in sys.argv else loss.item())
    time.sleep(0.02)
print("%s: %d steps, %d MiB in tensors" % (" ".join(sys.argv), len(kept), torch.cuda.memory_allocated() / 2**20))
