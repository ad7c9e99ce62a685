#!/usr/bin/env python3
"""A job whose lines are known: each marked call says on its own line what Python stands on.

`marked` notes the whole Python stack of the line that it is called in, which is also the
line of the operator that it gives its argument to. The truth has, for each operator that
only marked calls make, their stacks in order.
"""

import functools
import random
import sys
import threading
import time

import torch

import joblib

STACKS, CALLS = {}, {}


def marked(x, name):
    """Notes the stack of the caller's line as that of the next call of an operator."""
    frame, stack = sys._getframe(1), []
    while frame:
        stack.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    CALLS.setdefault(name, []).append(STACKS.setdefault(tuple(stack), len(STACKS)))
    return x


def plain(x):
    return torch.lgamma(marked(x, "aten::lgamma"))


def two_lines(x):
    if x.shape[0] % 2:
        return torch.lgamma(marked(x, "aten::lgamma"))
    return torch.lgamma(marked(x, "aten::lgamma"))


def recursive(x, depth=7):
    if depth:
        return recursive(x, depth - 1)
    return torch.lgamma(marked(x, "aten::lgamma"))


def in_a_loop(x):
    for i in range(4):
        if i == x.shape[0] % 4:
            y = torch.lgamma(marked(x, "aten::lgamma"))
    return y


def through_a_generator(x):
    def parts():
        yield 0
        yield torch.lgamma(marked(x, "aten::lgamma"))
    return [part for part in parts()][1]


def through_a_comprehension(x):
    return [torch.lgamma(marked(x, "aten::lgamma")) for _ in range(1)][0]


def through_c(x):
    return next(map(lambda y: torch.lgamma(marked(y, "aten::lgamma")), [x]))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


@decorated
@decorated
def wrapped(x):
    return torch.lgamma(marked(x, "aten::lgamma"))


class Module(torch.nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        if self.inner is not None:
            return self.inner(x)
        return torch.lgamma(marked(x, "aten::lgamma"))


class Custom(torch.autograd.Function):
    """Its forward and its backward are Python."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.special.i0(marked(x, "aten::special_i0"))

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * torch.special.i1(marked(x, "aten::special_i1"))


def custom(x):
    return Custom.apply(marked(x, "CustomBackward"))


def hooked(x):
    y = x * 1
    y.register_hook(lambda gradient: torch.special.i0e(marked(gradient, "aten::special_i0e")))
    return y


NESTED, DEEP = Module(Module()), Module(Module(Module(Module())))
SITES = [plain, two_lines, recursive, in_a_loop, through_a_generator, through_a_comprehension, through_c,
         wrapped, NESTED, DEEP]


def beside():
    """On a thread of its own."""
    for i in range(100):
        torch.special.i1e(marked(torch.ones(1 + i % 3), "aten::special_i1e"))


def main():
    parser = joblib.options(__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    chosen = random.Random(7)
    joblib.ready(args)
    other = threading.Thread(target=beside)
    other.start()
    other.join()
    for first in range(0, args.calls, 50):
        results = []
        for _ in range(first, min(first + 50, args.calls)):
            x = torch.full((chosen.randint(2, 5),), 2.5, requires_grad=True)
            results.append(chosen.choice(SITES)(x).sum())
        for _ in range(3):
            x = torch.full((2,), 1.5, requires_grad=True)
            results.append(custom(x).sum())
            results.append(hooked(x).sum())
        total = results[0]
        for result in results[1:]:
            total = total + result
        total.backward(marked(None, "backward"))
    stacks = [None] * len(STACKS)
    for stack, number in STACKS.items():
        stacks[number] = [f"{file}:{line}" for file, line in stack]
    joblib.tell(stacks=stacks, marked=CALLS)
    # The module's own code is freed when it has run: whoever reads its name from memory
    # has until then, and all calls together take a few hundred milliseconds.
    time.sleep(1)


if __name__ == "__main__":
    main()
