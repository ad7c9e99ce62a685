#!/usr/bin/env python3
"""A training loop whose time lies in functions with names: reading a batch (in
Python, in C without the GIL, recursively, in Python called by C), forward,
backward, update.

How much each does is drawn at random, step by step, and no step makes a system
call of its own: whoever looks at the loop again and again, at fixed times or
wherever the kernel lets it stop, finds it at another place each time.
"""

import random
import time
import zlib

import torch
from torch import nn

import joblib

TEXT = "".join(chr(97 + i * i % 26) for i in range(60000))
BYTES = TEXT.encode()


def amount(usual):
    """Between 1 and four times the usual, most often little."""
    return min(1 + int(random.expovariate(1 / usual)), 4 * usual)


def tokenise(units):
    counts = {}
    for letter in TEXT[:units * 500]:
        counts[letter] = counts.get(letter, 0) + 1
    return counts


def compress(units):
    return len(zlib.compress(BYTES[:units * 1000], 6))


def tree(depth):
    if depth == 0:
        return 1
    return tree(depth - 1) + tree(depth - 1)


def arrange(words):
    return sorted(words, key=weigh)


def weigh(word):
    return sum(map(ord, word))


def read_batch(length):
    tokenise(amount(16))
    compress(amount(15))
    tree(random.randint(5, 9))
    arrange([TEXT[i:i + 8] for i in range(amount(80))])
    size = amount(12)
    return torch.rand(size, length), torch.randint(0, 10, (size,))


def forward(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def backward(loss):
    loss.backward()


def update(optimizer):
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def train(seconds, model, optimizer):
    steps, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        x, y = read_batch(128)
        loss = forward(model, x, y)
        backward(loss)
        update(optimizer)
        steps += 1
    return steps


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(31)
    random.seed(41)
    torch.set_flush_denormal(True)
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    train(0.5, model, optimizer)
    joblib.ready(args)
    begin = joblib.clocks()
    steps = train(args.seconds, model, optimizer)
    joblib.tell(job="functions.py", begin=begin, end=joblib.clocks(), steps=steps)


if __name__ == "__main__":
    main()
