"""How do I survive running out of memory?

Run: bash examples/pytorch/out_of_memory.sh
Look at: the halved batch, and the last column: with cudaMallocAsync the text that many guides look for is not there, so
catch torch.OutOfMemoryError (a RuntimeError) by its class.
"""
import torch

WIDTH = 4096
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)


def step(batch):
    optimizer.zero_grad(set_to_none=True)
    inputs = torch.randn(batch, WIDTH, device="cuda")
    loss = torch.nn.functional.mse_loss(model(inputs), inputs[:, :1])
    loss.backward()
    optimizer.step()
    return loss.item()


print("allocator: %s, %.1f GiB" % (torch.cuda.get_allocator_backend(), torch.cuda.mem_get_info()[1] / 2**30))
batch, done = 262144, 0
while done < 10:
    failed = False
    try:
        loss = step(batch)
        done += 1
    except RuntimeError as error:  # as most guides do
        if not isinstance(error, torch.OutOfMemoryError):
            raise
        failed = True
        print("batch %6d: %s; 'CUDA out of memory' in its text: %s" %
              (batch, type(error).__name__, "yes" if "CUDA out of memory" in str(error) else "no"))
    if failed:  # not in the except block: there the error still holds the tensors of the step
        batch //= 2
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
print("batch %6d: 10 steps, loss %.3f" % (batch, loss))
