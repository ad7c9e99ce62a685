"""Three networks at toy size: a residual network, one for segmentation, one of three dimensions.

   python networks.py prepare DIR          # writes the samples that the loader reads
   python networks.py resnet DIR [--workers N] [--slow MS]

The script times its own steps, only so that they can be compared with what ebpfprof measures from outside. It runs on
PyTorch 1.13 and later.
"""
import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SHAPES = {"resnet": (3, 32, 32), "segmentation": (4, 48, 48), "volume": (2, 16, 16, 16)}
SAMPLES, BATCH, EPOCHS = 480, 8, 3


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(x + self.body(x))


class Segmentation(nn.Module):
    """An encoder and a decoder with one connection between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 12, 3, padding=1), nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.up, self.last = nn.ConvTranspose2d(24, 12, 2, stride=2), nn.Conv2d(24, 3, 3, padding=1)

    def forward(self, x):
        first = F.relu(self.first(x))
        return self.last(torch.cat([first, F.relu(self.up(F.relu(self.second(first))))], 1))


def network(name):
    if name == "resnet":
        return nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), Residual(24), Residual(24), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))
    if name == "segmentation":
        return Segmentation()
    return nn.Sequential(
        nn.Conv3d(2, 16, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4))


class Files(Dataset):
    def __init__(self, directory, name, slow):
        self.paths = sorted(os.path.join(directory, name, f) for f in os.listdir(os.path.join(directory, name)))
        self.slow = slow / 1000

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        sample = np.load(self.paths[i])
        end = time.perf_counter() + self.slow
        while time.perf_counter() < end:
            pass
        return torch.from_numpy(sample), i % 3


def loss_of(name, out, target):
    if name == "segmentation":
        return F.cross_entropy(out, target[:, None, None].expand(-1, *out.shape[2:]))
    if name == "volume":
        return F.mse_loss(out, target[:, None].float().expand_as(out))
    return F.cross_entropy(out, target)


def train(name, directory, workers, slow):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Files(directory, name, slow), batch_size=BATCH, num_workers=workers)
    begins, loads = [], []
    for epoch in range(EPOCHS):
        batches = iter(loader)
        while True:
            begin = time.perf_counter()
            try:
                x, target = next(batches)
            except StopIteration:
                break
            begins.append(begin)
            loads.append(time.perf_counter() - begin)
            optimizer.zero_grad()
            loss = loss_of(name, model(x), target)
            loss.backward()
            optimizer.step()
        begins.append(begin)  # the end of the epoch's last step
        loads.append(None)
        print(f"epoch {epoch} loss: {loss.item():.4f}", flush=True)
    steps = [(1000 * (b - a), 1000 * load) for a, b, load in zip(begins, begins[1:], loads) if load is not None]
    steps = steps[len(steps) // 3 :]
    print(f"own timers: step {sum(s for s, _ in steps) / len(steps):.4f} ms, load {sum(l for _, l in steps) / len(steps):.4f} ms")


def prepare(directory):
    generator = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        os.makedirs(os.path.join(directory, name), exist_ok=True)
        for i in range(SAMPLES):
            np.save(os.path.join(directory, name, f"{i:04}.npy"), generator.standard_normal(shape, dtype=np.float32))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["prepare", *SHAPES])
    parser.add_argument("directory")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--slow", type=float, default=0, help="milliseconds that a sample takes more")
    a = parser.parse_args()
    if a.what == "prepare":
        prepare(a.directory)
    else:
        train(a.what, a.directory, a.workers, a.slow)
