#!/usr/bin/env python3
"""A short training job, as it is run: imports, steps of 30 ms, evaluation between them.

Nothing waits for a tracer: it is started under `ebpfprof run`. Sixteen linear layers a
step; after every half of the steps a handful of batches without gradients, which call
other operators too. All operators are called equally often in every step.
"""

import argparse
import time

import joblib


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--length", type=float, default=0.03, help="seconds of a step, at the least")
    parser.add_argument("--evaluations", type=int, default=2)
    parser.add_argument("--batches", type=int, default=10, help="of an evaluation")
    args = parser.parse_args()

    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(20)
    layers = []
    for _ in range(15):
        layers += [nn.Linear(64, 64), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    inputs, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=False)
    criterion = nn.CrossEntropyLoss()

    def step():
        begin = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        time.sleep(max(0, begin + args.length - time.monotonic()))

    def evaluate():
        with torch.no_grad():
            for _ in range(args.batches):
                begin = time.monotonic()
                model(inputs).argmax(dim=1).eq(labels).sum()
                time.sleep(max(0, begin + args.length - time.monotonic()))

    begin, done = joblib.clocks(), 0
    each = max(1, args.steps // max(1, args.evaluations))
    while done < args.steps:
        for _ in range(min(each, args.steps - done)):
            step()
            done += 1
        if args.evaluations:
            evaluate()
    joblib.tell(job="short.py", steps=done, begin=begin, end=joblib.clocks())


if __name__ == "__main__":
    main()
