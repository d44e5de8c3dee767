#!/usr/bin/env python3
"""A plain PyTorch training that takes as big a batch as the card allows.

Two linear layers, Adam, mixed precision. The batch doubles until the card is out of memory; then it is halved once and
training goes on to the end. Nothing here knows of gpucap: whatever limits the card, it shows as a smaller card.
"""
import argparse
import time

import torch


def take_step(model, optimizer, scaler, inputs, targets):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


def make_batch(size, width, target_of):
    inputs = torch.randn(size, width, device="cuda")
    with torch.no_grad():
        return inputs, target_of(inputs)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--batch", type=int, default=2048, help="size of the first batch")
    options.add_argument("--seconds", type=float, default=8.0, help="how long to train once the batch size is found")
    options = options.parse_args()

    torch.manual_seed(0)
    print("card: %s, %.2f GiB" % (torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory / 2**30),
          flush=True)
    model = torch.nn.Sequential(torch.nn.Linear(options.width, options.width), torch.nn.ReLU(),
                                torch.nn.Linear(options.width, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    truth = torch.randn(options.width, 1, device="cuda") / options.width**0.5

    def target_of(inputs):
        return torch.tanh(inputs @ truth)

    size, step = options.batch, 0
    while True:
        try:
            inputs, targets = make_batch(size, options.width, target_of)
            loss = take_step(model, optimizer, scaler, inputs, targets)
            step += 1
            print("step %4d  batch %7d  loss %.4f" % (step, size, loss), flush=True)
            size *= 2
        except torch.OutOfMemoryError as error:
            print("out of memory at batch %d: %s" % (size, ". ".join(str(error).split(". ")[:3])), flush=True)
            break
        finally:
            inputs = targets = None

    optimizer.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    size //= 2
    print("recovered: going on with batch %d" % size, flush=True)
    started = said = time.monotonic()
    while True:
        inputs, targets = make_batch(size, options.width, target_of)
        loss = take_step(model, optimizer, scaler, inputs, targets)
        inputs = targets = None  # gone before the next batch is made: two would not fit
        step += 1
        now = time.monotonic()
        if now - said >= 1:
            said = now
            print("step %4d  batch %7d  loss %.4f" % (step, size, loss), flush=True)
        if now - started >= options.seconds:
            break
    print("done: %d steps, last loss %.4f, at most %.2f GiB in tensors" %
          (step, loss, torch.cuda.max_memory_allocated() / 2**30), flush=True)


if __name__ == "__main__":
    main()
