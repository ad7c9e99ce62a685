"""Known shares of time: a thread that spins in two Python functions, compresses
without the GIL and sleeps, in turns. Tells the processor time of each function
and both ends of each sleep.
"""

import argparse
import collections
import os
import time
import zlib

import joblib

DATA = os.urandom(1 << 20)


def multiply(units):
    total = 0
    for i in range(20000 * units):
        total += i * i
    return total


def join(units):
    text = ""
    for i in range(10000 * units):
        text = str(i) + text[:10]
    return text


def compress(units):
    """zlib lets go of the GIL."""
    for _ in range(units):
        zlib.compress(DATA, 6)


def doze(seconds):
    before = time.monotonic_ns()
    time.sleep(seconds)
    return before, time.monotonic_ns()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--cpu-seconds", type=float,
                        help="as many rounds as take this much processor time, however fast the machine is")
    parser.add_argument("--sleep", type=float, default=0.02)
    joblib.waiting(parser)
    args = parser.parse_args()
    work = [(multiply, 12), (join, 6), (compress, 1)]
    for function, units in work:
        function(units)
    joblib.ready(args)
    spent = collections.Counter()
    sleeps = []
    begin = joblib.clocks()
    rounds = 0
    while sum(spent.values()) < args.cpu_seconds * 1e9 if args.cpu_seconds else rounds < args.rounds:
        rounds += 1
        for function, units in work:
            start = time.thread_time_ns()
            function(units)
            spent[function.__name__] += time.thread_time_ns() - start
        sleeps.append(doze(args.sleep))
    joblib.tell(begin=begin, end=joblib.clocks(), cpu_ns=dict(spent), sleeps=sleeps, sleep_ns=int(args.sleep * 1e9))


if __name__ == "__main__":
    main()
