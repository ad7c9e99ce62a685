#!/usr/bin/env python3
"""Forks children that run operators, and children that exec another Python."""

import os
import subprocess
import sys

import joblib

CHILD = """
import sys, time, torch
torch.set_num_threads(1)
time.sleep(float(sys.argv[2]))
x = torch.full((64,), 0.5)
for _ in range(int(sys.argv[1])):
    x = torch.erfinv(x).sigmoid()
"""


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--children", type=int, default=3, help="of each kind")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--pause", type=float, default=1.0,
                        help="seconds between a child's start and its operators")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(28)
    x = torch.rand(64)
    joblib.ready(args)
    begin = joblib.clocks()

    forked = {}
    for child in range(args.children):
        count = args.count * (child + 1)
        pid = os.fork()
        if pid == 0:
            joblib.time.sleep(args.pause)
            for _ in range(count):
                x = torch.lgamma(x).sigmoid()
            os._exit(0)
        forked[pid] = count
    executed = {}
    for child in range(args.children):
        count = args.count * (child + 1)
        # PATH and all else as inherited; a fork, then an exec of the same interpreter.
        process = subprocess.Popen([sys.executable, "-c", CHILD, str(count), str(args.pause)])
        executed[process] = count
    failed = 0
    for pid in forked:
        failed |= os.waitpid(pid, 0)[1]
    for process in executed:
        failed |= process.wait()
    for _ in range(args.count):
        x = torch.erfc(x).sigmoid()
    end = joblib.clocks()
    joblib.tell(
        job="fork_exec.py", begin=begin, end=end,
        forked={str(pid): {"aten::lgamma": n, "aten::sigmoid": n} for pid, n in forked.items()},
        executed={str(p.pid): {"aten::erfinv": n, "aten::sigmoid": n}
                  for p, n in executed.items()},
        parent={"aten::erfc": args.count, "aten::sigmoid": args.count},
        sha256=joblib.Digest().add(x).hex())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
