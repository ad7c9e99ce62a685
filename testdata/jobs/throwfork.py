#!/usr/bin/env python3
"""Trains, throws C++ exceptions through operators and forks, and checks itself: each
step's result is that of the first, each exception is caught, each child ends well."""

import os
import signal
import sys

import torch

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--steps", type=int, default=1 << 40)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(27)
    x, w = torch.rand(16, 16), torch.rand(16, 16, requires_grad=True)
    wrong = torch.rand(3, 5)
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))

    def step():
        w.grad = None
        torch.relu(torch.addmm(x, x, w)).sum().backward()
        return joblib.Digest().add(w.grad).hex()

    joblib.ready(args)
    begin = joblib.clocks()
    expected, steps, caught, children = step(), 0, 0, 0
    while steps < args.steps and not stopping:
        if step() != expected:
            sys.exit("a step has another result than the first")
        steps += 1
        try:
            torch.mm(x, wrong)
            sys.exit("no exception")
        except RuntimeError:
            caught += 1
        if steps % 50 == 0:
            pid = os.fork()
            if pid == 0:
                os._exit(7 if torch.mm(x, x).shape == (16, 16) else 1)
            _, status = os.waitpid(pid, 0)
            if os.waitstatus_to_exitcode(status) != 7:
                sys.exit(f"a child ended with {status}")
            children += 1
    joblib.tell(job="throwfork.py", begin=begin, end=joblib.clocks(), steps=steps,
                caught=caught, children=children, sha256=expected)


if __name__ == "__main__":
    main()
