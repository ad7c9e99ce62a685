"""A recursion of known depth, through C code at each level, with work at its end."""

import argparse
import functools
import time

import joblib


def leaf(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))


def deeper(depth, seconds):
    """Each level is two native calls at least: reduce, and what it calls."""
    if depth == 0:
        leaf(seconds)
    else:
        functools.reduce(lambda *_: deeper(depth - 1, seconds), [1, 2])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2, help="of processor time")
    joblib.waiting(parser)
    args = parser.parse_args()
    joblib.ready(args)
    begin = joblib.clocks()
    deeper(args.depth, args.seconds)
    joblib.tell(begin=begin, end=joblib.clocks())


if __name__ == "__main__":
    main()
