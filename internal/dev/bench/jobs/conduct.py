#!/usr/bin/env python3
"""Runs a job of testdata/jobs until told to stop, and switches torch.profiler
on and off inside it, so that one process can be measured with and without it.

conduct.py JOB.py REPORT [options of the job]

Lines on standard input: "profile plain", "profile stacks", "profile off",
"quit"; each is answered, once it is done, by the same line on standard output.
REPORT gets three native 64-bit integers a step: start (CLOCK_MONOTONIC),
duration, and the process's CPU time in it, nanoseconds.
"""

import array
import os
import queue
import runpy
import sys
import threading
import time

JOBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../testdata/jobs")
sys.path.insert(0, JOBS)

import joblib  # noqa: E402


def conducted(report):
    def train(args, model, step, scopes, nodes=None):
        import torch
        from torch.profiler import ProfilerActivity, profile

        torch.set_flush_denormal(True)
        for _ in range(args.warmup + 1):
            start = time.monotonic_ns()
            step()
            last = time.monotonic_ns() - start
        commands = queue.SimpleQueue()
        threading.Thread(target=listen, args=(commands,), daemon=True).start()
        joblib.say(f"ready {os.getpid()} {last}")
        stamps, now, cpu, profiler = array.array("q"), time.monotonic_ns, time.process_time_ns, None
        start, used = now(), cpu()
        while True:
            step()
            end, after = now(), cpu()
            stamps.append(start)
            stamps.append(end - start)
            stamps.append(after - used)
            start, used = end, after
            if commands.empty():
                continue
            command = commands.get()
            if command == "quit":
                break
            if profiler:
                profiler.__exit__(None, None, None)
                profiler = None
            if command != "profile off":
                profiler = profile(activities=[ProfilerActivity.CPU],
                                   with_stack=command == "profile stacks")
                profiler.__enter__()
            joblib.say(command)
            start, used = now(), cpu()
        with open(report, "wb") as out:
            stamps.tofile(out)
        joblib.say("quit")
        os._exit(0)  # the listener may still read

    return train


def listen(commands):
    for line in sys.stdin:
        commands.put(line.strip())
    commands.put("quit")


if __name__ == "__main__":
    job, report = os.path.join(JOBS, sys.argv[1]), sys.argv[2]
    joblib.train = conducted(report)
    sys.argv = [job] + sys.argv[3:]
    runpy.run_path(job, run_name="__main__")
