"""What does a whole training script look like under a cap, and what does it use in each epoch?

Run: gpucap run --limit 70% -- python3 examples/pytorch/full_training.py
Look at: the card that it sees, which is 70 % of the real one, and a line for each epoch. Nothing in it knows of a cap.
"""
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

CLASSES, EPOCHS, MIB = 10, 3, 2**20


def make_data(count, prototypes):
    """Noisy pictures of ten patterns: something to learn that needs no download."""
    labels = torch.randint(CLASSES, (count,))
    return TensorDataset(prototypes[labels] + 2 * torch.randn(count, 3, 32, 32), labels)


def make_model():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.BatchNorm2d(128), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(), torch.nn.Linear(2048, 256), torch.nn.ReLU(), torch.nn.Linear(256, CLASSES))


def train(model, loader, optimizer, scheduler, scaler):
    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(images.cuda()).argmax(1) == labels.cuda()).sum().item() for images, labels in loader)
    return right / len(loader.dataset)


def main():
    torch.manual_seed(0)
    print("%s, %.1f GiB" % (torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory / 2**30))
    prototypes = torch.nn.functional.interpolate(torch.randn(CLASSES, 3, 4, 4), 32)
    loader = DataLoader(make_data(8192, prototypes), batch_size=512, shuffle=True, num_workers=2, pin_memory=True)
    test = DataLoader(make_data(2048, prototypes), batch_size=1024)
    model = make_model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, epochs=EPOCHS, steps_per_epoch=len(loader))
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(1, EPOCHS + 1):
        torch.cuda.reset_peak_memory_stats()
        loss = train(model, loader, optimizer, scheduler, scaler)
        right = accuracy(model, test)
        free, total = torch.cuda.mem_get_info()
        print("epoch %d: loss %.3f, right %.1f %%; peak in tensors %d MiB, reserved %d MiB, used of the card %d MiB" %
              (epoch, loss, right * 100, torch.cuda.max_memory_allocated() / MIB, torch.cuda.memory_reserved() / MIB,
               (total - free) / MIB), flush=True)
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        torch.save(model.state_dict(), file.name)
        model.load_state_dict(torch.load(file.name, map_location="cuda"))
    print("saved, loaded again, right %.1f %%" % (accuracy(model, test) * 100))


if __name__ == "__main__":
    main()
