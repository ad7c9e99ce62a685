#!/usr/bin/env python3
"""A DataLoader whose workers fork anew each epoch and run rare operators.

Every sample costs exactly one erfinv, two lgamma and three digamma in a worker
and nothing of these in the parent. Batches go to workers in turn.
"""

import collections
import os

import torch
from torch.utils.data import DataLoader, Dataset

import joblib

PER_SAMPLE = {"aten::erfinv": 1, "aten::lgamma": 2, "aten::digamma": 3}


class Samples(Dataset):
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        x = torch.full((16,), (index + 1) / (self.samples + 2))
        y = torch.erfinv(x)
        for _ in range(2):
            y = y + torch.lgamma(x)
        for _ in range(3):
            y = y + torch.digamma(x)
        return y, os.getpid()


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(24)

    loader = DataLoader(Samples(args.samples), batch_size=args.batch,
                        num_workers=args.workers, multiprocessing_context="fork")
    weight = torch.randn(16, 16)
    joblib.ready(args)
    begin = joblib.clocks()
    digest = joblib.Digest()
    epochs = []
    batches = 0
    for _ in range(args.epochs):
        samples = collections.Counter()
        for batch, pids in loader:
            samples.update(pids.tolist())
            digest.add(torch.erfc(batch @ weight))
            batches += 1
        epochs.append(samples)
    end = joblib.clocks()
    joblib.tell(
        job="dataloader.py", begin=begin, end=end, epochs=args.epochs, batches=batches,
        workers=[{str(pid): {name: each * count for name, each in PER_SAMPLE.items()}
                  for pid, count in samples.items()} for samples in epochs],
        operators_in_workers={name: each * args.samples * args.epochs
                              for name, each in PER_SAMPLE.items()},
        operators_in_parent={"aten::erfc": batches},
        # One more next() than there are batches: the one that ends the epoch.
        scopes={"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__":
                batches + args.epochs},
        sha256=digest.hex())


if __name__ == "__main__":
    main()
