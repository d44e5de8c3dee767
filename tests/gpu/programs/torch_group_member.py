"""One of several PyTorch processes that share a budget: takes blocks until it is refused, rests, takes again, and at the
end takes and gives back at random for some seconds. argv[1]: seconds. No import of ours but the reporting."""
import random
import sys
import time

import torch

import report

BLOCK = 256 << 20
blocks = []


def take_until_refused():
    taken = 0
    while True:
        try:
            blocks.append(torch.empty(BLOCK, dtype=torch.uint8, device="cuda"))
            taken += 1
        except torch.OutOfMemoryError:
            return taken


torch.empty(1 << 20, device="cuda")
report.ready("up")
report.fact("first", take_until_refused())
report.ready("full")
report.fact("second", take_until_refused())
report.ready("full again")
rounds = refused = 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    rounds += 1
    if blocks and random.random() < 0.5:
        del blocks[random.randrange(len(blocks))]
        torch.cuda.empty_cache()
    else:
        try:
            blocks.append(torch.empty(random.randrange(1 << 20, BLOCK), dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            refused += 1
report.fact("rounds", rounds)
report.fact("refused", refused)
report.check("it was refused now and then", refused > 0, refused)
report.ready("end")
