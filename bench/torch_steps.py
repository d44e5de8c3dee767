"""Training steps of three models, timed: a small MLP, a ResNet-50 and a transformer of some 100 million parameters.

A program that is measured, with and without the preload; run_pairs.py speaks to it as to driver_bench. Needs PyTorch with
CUDA and nothing else. It knows nothing of gpucap. Lines on stdin: "open MODEL [empty_cache=1] [batch=N] [core=N]", "run STEPS",
"close". With core=N all threads of the program are pinned to that one: they take turns in a step anyway. The two large models have batches
that keep the card busy, as in training; the small one is bound by the processor, which is where a cost of each call would show.
"""
import json
import os
import sys
import time


def say(**facts):
    print(json.dumps(facts), flush=True)


try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    say(missing="PyTorch: %s" % error)
    sys.exit(0)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions beside a short cut."""

    def __init__(self, inside, width, stride):
        super().__init__()
        outside = 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.short = nn.Identity()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return functional.relu(self.path(x) + self.short(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            layers.append(Bottleneck(inside, width, stride if index == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


class Transformer(nn.Module):
    """12 layers of width 768 with causal attention; embedding and output share their weights: 110 million parameters."""

    def __init__(self, words=32000, width=768, layers=12, heads=12, longest=256):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
                                       norm_first=True) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, text):
        length = text.shape[1]
        x = self.words(text) + self.places(torch.arange(length, device=text.device))
        mask = torch.full((length, length), float("-inf"), device=text.device, dtype=x.dtype).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.last(x) @ self.words.weight.t()


class Training:
    def __init__(self, name, batch, empty_cache):
        torch.manual_seed(1)
        torch.backends.cudnn.benchmark = False
        self.empty_cache, self.mixed = empty_cache, name == "transformer"
        if name == "mlp":
            batch = batch or 256
            self.model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
            self.data, self.wanted = torch.randn(batch, 784), torch.randint(10, (batch,))
        elif name == "resnet50":
            batch = batch or 128
            self.model = resnet50()
            self.data, self.wanted = torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))
        elif name == "transformer":
            batch = batch or 64
            self.model = Transformer()
            self.data = torch.randint(32000, (batch, 256))
            self.wanted = torch.randint(32000, (batch * 256,))
        else:
            raise SystemExit("torch_steps: there is no model '%s'" % name)
        self.model = self.model.cuda()
        self.data, self.wanted = self.data.cuda(), self.wanted.cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9)

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.mixed):
            answer = self.model(self.data)
            loss = functional.cross_entropy(answer.reshape(-1, answer.shape[-1]).float(), self.wanted)
        loss.backward()
        self.optimizer.step()
        if self.empty_cache:
            torch.cuda.empty_cache()

    def run_ns(self, steps):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(steps):
            self.step()
        torch.cuda.synchronize()
        return time.perf_counter_ns() - start


WARM_UP_S = 2.2


def pin(core):
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), {core})
        except OSError:
            pass  # it ended meanwhile


def main():
    if not torch.cuda.is_available():
        say(missing="PyTorch with a card that it can use")
        return
    torch.zeros(1, device="cuda")
    say(ready=True, torch=torch.__version__)
    training = None
    for line in sys.stdin:
        words = line.split()
        options = dict(word.split("=", 1) for word in words[2:])
        if words[0] == "open":
            training = None
            torch.cuda.empty_cache()
            if "core" in options:
                pin(int(options["core"]))
            training = Training(words[1], int(options.get("batch", 0)), options.get("empty_cache") == "1")
            # A program that has just begun is looked at more closely for two seconds; what is measured comes after.
            began = time.monotonic()
            while time.monotonic() - began < WARM_UP_S:
                training.run_ns(5)
            say(open=words[1], filled=0, parameters=training.parameters())
        elif words[0] == "run":
            steps = int(words[1])
            taken = training.run_ns(steps)
            say(operations=steps, ns=taken, ns_per_operation=taken / steps)
        elif words[0] == "close":
            training = None
            say(closed=True)
        else:
            raise SystemExit("torch_steps: '%s' is not understood" % line.strip())


main()
