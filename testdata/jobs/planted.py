#!/usr/bin/env python3
"""A training loop with one problem planted in it, or with none.

--problem says which; --mended runs the same loop without it. The truth has the line
of the problem, and the median and mean time of a step.
"""

import statistics
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import joblib

# Of each kind of problem a second one that is written otherwise.
PROBLEMS = ("none", "loader", "fetch", "layout", "index", "fusion", "hook", "gil", "recompile",
            "workers", "branch", "permute", "embedding", "gelu", "gradient", "text", "shape")


def line_of(problem):
    """The line that is marked with the problem's name."""
    with open(__file__) as source:
        for number, line in enumerate(source, 1):
            if line.rstrip().endswith("# planted: " + problem):
                return number
    return None


class Samples(Dataset):
    """Whole batches."""

    def __init__(self, count, batch, width, problem):
        self.x, self.count, self.problem = torch.randn(batch, width), count, problem

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.problem == "loader":
            time.sleep(0.02)  # planted: loader
        if self.problem == "workers":
            time.sleep(0.04)  # planted: workers
        return self.x


class Block(nn.Module):
    def __init__(self, args, problem):
        super().__init__()
        self.problem, self.width = problem, args.width
        self.first = nn.Linear(args.width, args.width)
        self.second = nn.Linear(args.width, args.width)
        self.table = nn.Parameter(torch.zeros(100_000, 64))
        self.register_buffer("index", torch.randint(0, 100_000, (200,)))

    def forward(self, x):
        y = torch.relu(self.first(x))
        if self.problem == "layout":
            for _ in range(6):
                y = y.t().contiguous().t().contiguous()  # planted: layout
        if self.problem == "fusion":
            for _ in range(20):
                y = ((y * 1.01 + 0.1) - 0.1) / 1.01 * 1.0 + 0.0  # planted: fusion
        if self.problem == "index":
            y = y + self.table[self.index].sum()  # planted: index
        if self.problem == "permute":
            for _ in range(6):
                y = y.view(-1, 8, 8, 8).permute(0, 2, 3, 1).contiguous().view(y.shape)  # planted: permute
        if self.problem == "embedding":
            y = y + nn.functional.embedding(self.index, self.table).mean()  # planted: embedding
        if self.problem == "gelu":
            for _ in range(12):
                y = 0.5 * y * (1 + torch.tanh(0.797 * (y + 0.0447 * y * y * y)))  # planted: gelu
        return self.second(y)


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--problem", choices=PROBLEMS, default="none")
    parser.add_argument("--mended", action="store_true", help="the loop without the problem")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    problem = "none" if args.mended else args.problem
    torch.set_num_threads(1)
    torch.manual_seed(33)

    model = Block(args, problem)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p is not model.table], lr=1e-3)
    loader = DataLoader(Samples(args.steps, args.batch, args.width, problem), batch_size=None,
                        num_workers=2 if args.problem == "workers" else 0)
    if problem == "hook":
        def hook(*_):
            time.sleep(0.01)  # planted: hook

        model.first.register_forward_hook(hook)
    if problem == "gradient":
        def backward_hook(*_):
            time.sleep(0.01)  # planted: gradient

        model.second.register_full_backward_hook(backward_hook)
    stop = threading.Event()

    def spin():
        total = 0
        while not stop.is_set():
            if problem == "text":
                total += len("".join(str(i) for i in range(1000)))  # planted: text
            else:
                total += sum(range(1000))  # planted: gil

    spinner = threading.Thread(target=spin, daemon=True)
    joblib.ready(args)
    begin = joblib.clocks()
    if problem in ("gil", "text"):
        spinner.start()
    stamps = []
    total = 0.0
    if problem == "shape":
        torch._dynamo.config.recompile_limit = 10_000
        compiled = torch.compile(lambda y: (y.sin() + y.cos()).mean(), backend="eager", dynamic=False)
    for step, x in enumerate(loader):
        stamps.append(time.monotonic_ns())
        loss = model(x).square().mean()
        if problem == "recompile":
            # A function whose code is made anew is compiled anew; a lambda written here has the same code each time.
            loss = loss + torch.compile(eval("lambda y: (y.sin() + y.cos()).mean()"), backend="eager")(x)  # planted: recompile
        if problem == "shape":
            loss = loss + compiled(x[:1 + step % 61, :1 + step % 59])  # planted: shape
        if problem == "branch":
            flat = x.flatten()
            for i in range(300):
                if flat[i] > 0:  # planted: branch
                    total += 1
        if problem == "fetch":
            flat = x.flatten()
            for i in range(400):
                total += flat[i].item()  # planted: fetch
        loss.backward()
        optimizer.step()
        model.zero_grad()
    end = joblib.clocks()
    stop.set()
    periods = [b - a for a, b in zip(stamps, stamps[1:])]
    joblib.tell(begin=begin, end=end, problem=problem, steps=len(stamps), line=line_of(args.problem),
                step_ns_median=statistics.median(periods), step_ns_mean=statistics.mean(periods))


if __name__ == "__main__":
    main()
