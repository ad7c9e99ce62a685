#!/usr/bin/env python3
"""Loops of every shape that a step detector has to know, with their own count and timer.

--loop plain: load, forward, backward, optimizer. accumulate: several batches for one
optimizer step, fewer in the last one of an epoch. evaluate: after each epoch batches
without a backward pass. inference: nothing else.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--loop", choices=("plain", "accumulate", "evaluate", "inference"), default="plain")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batches", type=int, default=30, help="of an epoch (default %(default)s)")
    parser.add_argument("--accumulate", type=int, default=4, help="batches for one optimizer step")
    parser.add_argument("--width", type=int, default=512)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(31)

    width, batch = args.width, 64
    data = TensorDataset(torch.randn(args.batches * batch, width), torch.randn(args.batches * batch, width))
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    every = args.accumulate if args.loop == "accumulate" else 1
    train, evaluate = [], 0  # begins of the training steps on CLOCK_MONOTONIC
    joblib.ready(args)
    begin = joblib.clocks()
    digest = joblib.Digest()
    for _ in range(args.epochs):
        if args.loop != "inference":
            loader = iter(DataLoader(data, batch_size=batch))
            number = 0
            while True:
                stamp = time.monotonic_ns()
                try:
                    x, y = next(loader)
                except StopIteration:
                    break
                if number % every == 0:
                    train.append(stamp)
                criterion(model(x), y).backward()
                number += 1
                if number % every == 0 or number == args.batches:
                    optimizer.step()
                    optimizer.zero_grad()
        if args.loop in ("evaluate", "inference"):
            with torch.no_grad():
                for x, y in DataLoader(data, batch_size=batch):
                    digest.add(criterion(model(x), y))
                    evaluate += 1
    end = joblib.clocks()
    periods = [b - a for a, b in zip(train, train[1:])]
    joblib.tell(begin=begin, end=end, loop=args.loop, train=len(train), evaluate=evaluate,
                periods_ns=periods, sha256=digest.hex())


if __name__ == "__main__":
    main()
