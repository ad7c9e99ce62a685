"""Calls getppid(2) many times below so many Python frames as a line of stdin
says ("40"), or as many runs of the interpreter loop ("40 c")."""
import functools
import os
import sys

CALLS = 3000


def down(n):
    if n > 1:
        return down(n - 1)
    for _ in range(CALLS):
        os.getppid()


def down_c(n):
    if n > 1:
        return functools.reduce(lambda a, b: down_c(n - 2), (1, 2))
    for _ in range(CALLS):
        os.getppid()


print("ready", flush=True)
for line in sys.stdin:
    depth, *kind = line.split()
    (down_c if kind else down)(int(depth) - 1)  # the module is a frame, too
    print("done", flush=True)
