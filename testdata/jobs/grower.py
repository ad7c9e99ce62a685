#!/usr/bin/env python3
"""Takes more and more memory, until there is none left or it has --most MiB (needs no torch)."""

import time

import joblib


def grow(held):
    """Some MiB, and as long as that takes a program that does something with them."""
    held.append(b"x" * (4 << 20))
    until = time.perf_counter() + 0.02
    while time.perf_counter() < until:
        pass


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--most", type=int, default=2048, help="MiB, beyond which it gives up")
    args = parser.parse_args()
    held = []
    joblib.ready(args)
    begin = joblib.clocks()
    while len(held) < args.most // 4:
        grow(held)
    joblib.tell(begin=begin, end=joblib.clocks(), held=len(held))


if __name__ == "__main__":
    main()
