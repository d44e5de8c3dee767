"""How do several trainings share one card?

Run: bash examples/pytorch/sharing.sh
Look at: who comes to "done". One job asks for a share of the card that it sees, or for so many GiB, in some slices, and
then trains for a while. Like most programs it ends when it is out of memory, unless it is told to --make-do.
"""
import argparse
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("name")
parser.add_argument("--share", type=float, default=0.0, help="of the card that it sees")
parser.add_argument("--gib", type=float, default=0.0)
parser.add_argument("--slices", type=int, default=30)
parser.add_argument("--seconds", type=float, default=3.0)
parser.add_argument("--make-do", action="store_true", help="train with what it got")
options = parser.parse_args()


def say(what):
    print("%s %s: %s" % (time.strftime("%H:%M:%S"), options.name, what), flush=True)


def take(size):
    """True if there was room. A slice is a tensor of the training set, kept to the end."""
    try:
        data.append(torch.empty(int(size), dtype=torch.uint8, device="cuda"))
        return True
    except torch.OutOfMemoryError:
        return False


data, total = [], torch.cuda.get_device_properties(0).total_memory
wanted = options.gib * 2**30 or options.share * total
say("starts, sees a card of %.1f GiB, wants %.1f GiB" % (total / 2**30, wanted / 2**30))
while len(data) < options.slices:
    if not take(wanted / options.slices):
        say("OUT OF MEMORY with %.1f GiB" % (torch.cuda.memory_reserved() / 2**30))
        if not options.make_do:
            sys.exit(1)
        del data[-3:]  # room for the training itself
        torch.cuda.empty_cache()
        break
    time.sleep(1.5 / options.slices)

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
end, steps = time.monotonic() + options.seconds, 0
while time.monotonic() < end:
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(256, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    steps += 1
torch.cuda.synchronize()
say("done with %.1f GiB" % (torch.cuda.memory_reserved() / 2**30))
