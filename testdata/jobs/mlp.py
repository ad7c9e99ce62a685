#!/usr/bin/env python3
"""The worst case: a tiny MLP under Adam, all of it operator overhead.

About 315 operator calls in a step of little more than a millisecond. With --layers
and --pause, steps as long as an accelerator's.
"""

import time

import torch
from torch import nn

import joblib


def main():
    parser = joblib.options(__doc__.splitlines()[0], steps=200, warmup=20)
    parser.add_argument("--optimizer", choices=("adam", "adamw", "sgd"), default="adam")
    parser.add_argument("--layers", type=int, default=2, help="hidden layers (default %(default)s)")
    parser.add_argument("--pause", type=float, default=0,
                        help="seconds that a step waits before each of its passes")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(20)

    widths = (64, *[128] * args.layers, 10)
    layers = []
    for width, following in zip(widths, widths[1:]):
        layers += [nn.Linear(width, following), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    inputs = torch.randn(32, widths[0])
    inputs[16:] = inputs[:16]  # with other labels: the loss, and so the work, never dies out
    labels = torch.randint(0, widths[-1], (32,))
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    kind = kinds[args.optimizer]
    optimizer = kind(model.parameters(), lr=1e-3, foreach=False)
    criterion = nn.CrossEntropyLoss()

    def pause():
        if args.pause:
            time.sleep(args.pause)

    def step():
        optimizer.zero_grad(set_to_none=True)
        pause()
        with torch.autograd.profiler.record_function("forward"):
            loss = criterion(model(inputs), labels)
        pause()
        loss.backward()
        pause()
        optimizer.step()
        return loss.detach()

    joblib.train(args, model, step, scopes={
        "forward": 1,
        f"Optimizer.step#{kind.__name__}.step": 1,
        f"Optimizer.zero_grad#{kind.__name__}.zero_grad": 1,
    }, nodes={
        "AddmmBackward0": args.layers + 1, "ReluBackward0": args.layers, "TBackward0": args.layers + 1,
        "LogSoftmaxBackward0": 1, "NllLossBackward0": 1,
        "torch::autograd::AccumulateGrad": 2 * (args.layers + 1),
    })


if __name__ == "__main__":
    main()
