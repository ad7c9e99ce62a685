#!/usr/bin/env python3
"""Runs operators, tells its truth, and ends in the way it is asked to."""

import os
import signal
import sys
import threading

import torch

import joblib

WAYS = ("return", "sys.exit", "os._exit", "raise", "sigterm", "sigkill", "abort", "segv",
        "daemon-thread")


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--how", choices=WAYS, default="return")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before the end")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(29)
    x = torch.rand(64)
    joblib.ready(args)

    begin = joblib.clocks()
    for _ in range(args.count):
        x = torch.lgamma(torch.erfc(x)).sigmoid()
    end = joblib.clocks()
    each = ("aten::erfc", "aten::lgamma", "aten::sigmoid")
    joblib.tell(job="exits.py", how=args.how, begin=begin, end=end,
                operators=dict.fromkeys(each, args.count), sha256=joblib.Digest().add(x).hex())
    joblib.time.sleep(args.pause)

    if args.how == "sys.exit":
        sys.exit(7)
    elif args.how == "os._exit":
        os._exit(8)
    elif args.how == "raise":
        raise RuntimeError("the end")
    elif args.how == "sigterm":
        os.kill(os.getpid(), signal.SIGTERM)
    elif args.how == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif args.how == "abort":
        os.abort()
    elif args.how == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif args.how == "daemon-thread":
        # At shutdown CPython ends daemon threads by forced unwinding, from inside the
        # interpreter. (Inside an operator PyTorch aborts then, without any tracer.)
        gate = threading.Barrier(5)
        for _ in range(4):
            threading.Thread(target=spin, args=(x, gate), daemon=True).start()
        gate.wait()
        joblib.time.sleep(0.1)


def spin(x, gate):
    for _ in range(50):
        x = torch.digamma(x).sigmoid()
    gate.wait()
    while True:
        count(10)


def count(depth):
    return depth and count(depth - 1)


if __name__ == "__main__":
    main()
