"""The usual training loop: two linear layers, Adam, autocast, GradScaler, MSE. Prints its losses to the last bit."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what makes cuBLAS repeat itself exactly

import torch

import report

STEPS = 60
torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
report.fact("total_bytes", torch.cuda.get_device_properties(0).total_memory)
model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.Linear(2048, 16)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
inputs = torch.randn(STEPS, 4096, 1024, device="cuda")
targets = torch.randn(STEPS, 4096, 16, device="cuda")
losses = []
for step in range(STEPS):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.mse_loss(model(inputs[step]), targets[step])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item().hex())
torch.cuda.synchronize()
report.fact("losses", losses)
report.check("the losses move", len(set(losses)) > STEPS // 2, losses[:3])
report.ready("trained")
