#!/usr/bin/env python3
"""Allocates and frees tensors whose number, sizes and peak are known.

--what known: by construction. --what train: a model is built, trained and
dropped; --profile FILE has the count, from torch.profiler's memory events of a
second, identical run. --what limited: each allocation and free is timed by the job itself,
and some find no room under RLIMIT_AS, which the job survives. Everything allocated
in the region is freed in it.
"""

import gc
import json
import resource
import time

import torch
from torch import nn

import joblib


def known(rounds):
    """Grows and shrinks in steps; yields what it did as (allocated, freed) bytes."""
    for turn in range(rounds):
        held = []
        for i in range(50):
            size = 1000 * (i + 1) + turn
            held.append(torch.empty(size, dtype=torch.uint8))
            yield size, 0
        for i in range(0, 50, 2):  # every other one, oldest first
            held[i] = None
            yield 0, 1000 * (i + 1) + turn
        big = torch.empty(1_000_000 + turn, dtype=torch.uint8)
        yield 1_000_000 + turn, 0
        for i in range(1, 50, 2):
            held[i] = None
            yield 0, 1000 * (i + 1) + turn
        del big
        yield 0, 1_000_000 + turn


TIMED, REFUSED = dict(timed_ns=0, freed_ns=0), dict(refused=0, refused_bytes=1 << 33)


def limited(rounds):
    """Allocates and frees what it times; then three times what its address space has no room for."""
    for _ in range(rounds):
        for size in (100, 70_000, 1_000_000, 40_000_000):
            begin = time.perf_counter_ns()
            block = torch.empty(size, dtype=torch.uint8)
            TIMED["timed_ns"] += time.perf_counter_ns() - begin
            yield size, 0
            begin = time.perf_counter_ns()
            del block
            TIMED["freed_ns"] += time.perf_counter_ns() - begin
            yield 0, size
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), before[1]))
    for _ in range(3):
        try:
            torch.empty(REFUSED["refused_bytes"], dtype=torch.uint8)  # refused here
        except RuntimeError:
            REFUSED["refused"] += 1
    resource.setrlimit(resource.RLIMIT_AS, before)
    torch.empty(4096, dtype=torch.uint8)
    yield 4096, 0
    yield 0, 4096


def train(rounds):
    torch.manual_seed(30)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    inputs = torch.randn(32, 64)
    for _ in range(rounds):
        optimizer.zero_grad(set_to_none=True)
        model(inputs).square().mean().backward()
        optimizer.step()


def balance(changes):
    """Counts, bytes and the peak of live bytes of a series of (allocated, freed)."""
    told = dict(allocations=0, frees=0, bytes_allocated=0, bytes_freed=0, peak_bytes=0)
    live = 0
    for allocated, freed in changes:
        told["allocations"] += allocated > 0
        told["frees"] += freed > 0
        told["bytes_allocated"] += allocated
        told["bytes_freed"] += freed
        live += allocated - freed
        told["peak_bytes"] = max(told["peak_bytes"], live)
    told["live_bytes_at_end"] = live
    return told


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--what", choices=("known", "train", "limited"), default="known")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--profile", metavar="FILE",
                        help="run under torch.profiler, write the count of its memory events")
    args = parser.parse_args()
    args.profile_detail = "memory"
    torch.set_num_threads(1)
    run = {"known": lambda rounds: list(known(rounds)), "train": train,
           "limited": lambda rounds: list(limited(rounds))}[args.what]
    run(1)
    TIMED["timed_ns"] = TIMED["freed_ns"] = REFUSED["refused"] = 0
    gc.collect()
    gc.disable()

    joblib.ready(args)
    profiler = joblib.profiling(args)
    if profiler:
        profiler.__enter__()
    begin = joblib.clocks()
    changes = run(args.rounds)
    gc.collect()
    end = joblib.clocks()
    if profiler:
        profiler.__exit__(None, None, None)
        events = [event for event in profiler.profiler.kineto_results.events()
                  if event.name() == "[memory]"]
        events.sort(key=lambda e: e.start_ns() if hasattr(e, "start_ns") else e.start_us())
        with open(args.profile, "w") as out:
            json.dump(balance((max(e.nbytes(), 0), max(-e.nbytes(), 0)) for e in events), out,
                      indent=1, sort_keys=True)
            out.write("\n")
    if args.what == "limited":
        # It lives on, as a job does that survives this: whose code a stack names is read from
        # the job's memory, when its calls are read.
        time.sleep(2)
    joblib.tell(job="allocations.py", what=args.what, rounds=args.rounds, begin=begin, end=end,
                memory={**balance(changes), **TIMED, **REFUSED} if changes else None)


if __name__ == "__main__":
    main()
