"""A training that needs argv[1] GiB at once and runs for argv[2] seconds. No import of ours but the reporting."""
import sys
import time

import torch

import report

activations = torch.empty(int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = 0
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    x = torch.randn(256, 1024, device="cuda")
    loss = torch.nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
torch.cuda.synchronize()
report.fact("steps", steps)
report.check("it trained", steps > 10, steps)
