#!/usr/bin/env python3
"""A training loop on the CPU with something planted in its memory, or with nothing.

--plant leak keeps something of each step, growth makes a buffer anew and longer in
each step, and peak has the backward pass make the largest tensor, for a line of the
forward pass that makes a view. The truth has the line.
"""

import torch
from torch import nn

import joblib


def line_of(plant):
    """The line that is marked with the name."""
    with open(__file__) as source:
        for number, line in enumerate(source, 1):
            if line.rstrip().endswith("# planted: " + plant):
                return number
    return None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 128)
        self.second = nn.Linear(128, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Widening(nn.Module):
    """What it makes is small; the gradient of what it expands is not."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 64))

    def forward(self):
        wide = self.weight.expand(20_000, 64)
        return wide[:, ::2].sum() / 1e6  # planted: peak


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--plant", choices=("none", "leak", "growth", "peak"), default="none")
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    torch.manual_seed(33)
    torch.set_num_threads(1)
    net, widening = Net(), Widening()
    optimizer = torch.optim.SGD([*net.parameters(), *widening.parameters()], lr=0.01, momentum=0.9)
    kept, buffer = [], None
    joblib.ready(args)
    begin = joblib.clocks()
    for step in range(args.steps):
        x, y = torch.randn(32, 64), torch.randn(32, 8)
        optimizer.zero_grad()
        out = net(x)
        loss = ((out - y) ** 2).mean()
        if args.plant == "leak":
            kept.append(out.detach() * 2)  # planted: leak
        if args.plant == "growth":
            buffer = torch.zeros(500 * (step + 1))  # planted: growth
        if args.plant == "peak":
            loss = loss + widening()
        loss.backward()
        optimizer.step()
    end = joblib.clocks()
    joblib.tell(begin=begin, end=end, steps=args.steps, line=line_of(args.plant), kept=len(kept),
                buffer=0 if buffer is None else buffer.numel())


if __name__ == "__main__":
    main()
