"""Collectives between two GPUs: nccl.py COUNT

Two processes, one GPU each. The parent prints "ready PID" when both have made
their first collective, and tells how many they made after its line.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD = 2


def rank(index, count, port, ready, go, spans):
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=index, world_size=WORLD)
    tensor, parts = torch.ones(1 << 16, device="cuda"), torch.ones(WORLD << 16, device="cuda")
    for _ in range(3):
        dist.all_reduce(tensor)
        dist.all_gather_into_tensor(parts, tensor)
    torch.cuda.synchronize()
    ready.put(index)
    go.wait()
    begin = time.monotonic_ns()
    for _ in range(count):
        dist.all_reduce(tensor)
        dist.all_gather_into_tensor(parts, tensor)
    torch.cuda.synchronize()
    spans.put((begin, time.monotonic_ns()))
    time.sleep(1)  # its last calls are read while it is there
    dist.destroy_process_group()


if __name__ == "__main__":
    count = int(sys.argv[1])
    context = mp.get_context("spawn")
    ready, spans, go = context.Queue(), context.Queue(), context.Event()
    processes = [context.Process(target=rank, args=(i, count, 29400 + os.getpid() % 1000, ready, go, spans)) for i in range(WORLD)]
    for p in processes:
        p.start()
    for _ in processes:
        ready.get(timeout=240)
    print(f"ready {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(2)
    go.set()
    begins, ends = zip(*[spans.get(timeout=240) for _ in processes])
    for p in processes:
        p.join()
    print(json.dumps({"told": {
        "begin_ns": min(begins), "end_ns": max(ends), "seconds": (max(ends) - min(begins)) / 1e9,
        "collectives": {"ncclAllReduce": WORLD * count, "ncclAllGather": WORLD * count},
        "versions": {"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version()))},
    }}), flush=True)
    sys.stdin.readline()
