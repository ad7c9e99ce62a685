#!/usr/bin/env python3
"""A small GPT whose step has one more operator, aten::erf over --elements numbers.

With --measure it prints how many elements take one percent of a step, and ends: a step
that is so many percent longer is one with more of them.
"""

import time

import torch
from torch import nn

import joblib
from transformer import GPT


def main():
    parser = joblib.options(__doc__.splitlines()[0], steps=300, warmup=20)
    parser.add_argument("--elements", type=int, default=100_000)
    parser.add_argument("--measure", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(22)

    vocabulary, length = 256, 64
    model = GPT(vocabulary, 128, 4, 4, length)
    text = torch.randint(0, vocabulary, (4, length + 1))
    numbers = torch.randn(args.elements)
    result = torch.empty_like(numbers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        scores = model(text[:, :-1])
        torch.erf(numbers, out=result)
        loss = nn.functional.cross_entropy(scores.reshape(-1, vocabulary), text[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.detach()

    if not args.measure:
        return joblib.train(args, model, step, scopes={})

    def fastest(call, times):
        took = []
        for _ in range(times):
            begin = time.perf_counter()
            call()
            took.append(time.perf_counter() - begin)
        return min(took)

    whole = fastest(step, 60)
    one = fastest(lambda: torch.erf(numbers, out=result), 200)
    rest = whole - one
    joblib.say(str(round(args.elements * rest / 100 / one)))


if __name__ == "__main__":
    main()
