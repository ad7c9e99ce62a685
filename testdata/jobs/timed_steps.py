"""Trains a small network and prints when each step and each call of the loader began and ended, by its own clock.

Beside it a line that a benchmark finds a loss in. Nothing here knows of a recording.
"""
import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 8 * 40

    def __getitem__(self, i):
        time.sleep(0.002)  # long enough to be recorded as a wait
        return torch.full((64,), float(i)), i % 3


torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
steps, epochs = [], []
for epoch in range(int(sys.argv[1])):
    batches = iter(DataLoader(Slow(), batch_size=8))
    begin = time.perf_counter()
    epochs.append(begin)
    while True:
        try:
            x, y = next(batches)
        except StopIteration:
            break
        loaded = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x / 320), y)
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        steps.append([now - begin, loaded - begin])
        begin = now
    epochs[-1] = time.perf_counter() - epochs[-1]
    print("epoch", epoch, "loss:", loss.item())
print(json.dumps({"steps": steps, "epochs": epochs}))
