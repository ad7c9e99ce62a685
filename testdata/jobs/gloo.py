#!/usr/bin/env python3
"""Ranks under gloo, each a process of its own with torchrun's environment.

Every rank trains a small model under DistributedDataParallel and then issues
collectives by hand. The parent collects each rank's truth.
"""

import json
import os
import socket
import subprocess
import sys

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    if "RANK" in os.environ:
        rank(args)
    else:
        launch(args)


def launch(args):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    joblib.ready(args)
    for number in range(args.ranks):
        environment = dict(
            os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(args.ranks),
            LOCAL_WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            TORCHELASTIC_RUN_ID="gloo-job", GLOO_SOCKET_IFNAME="lo")
        ranks.append(subprocess.Popen(
            [sys.executable, __file__, "--ranks", str(args.ranks), "--steps", str(args.steps)],
            env=environment, stdout=subprocess.PIPE, text=True))
    told, failed = [], 0
    for process in ranks:
        out, _ = process.communicate()
        failed |= process.returncode
        for line in out.splitlines():
            if line.startswith('{"truth"'):
                told.append(json.loads(line)["truth"])
    joblib.tell(job="gloo.py", world_size=args.ranks, ranks=told,
                torch=told[0]["torch"] if told else None)
    sys.exit(failed)


def rank(args):
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(25)
    dist.init_process_group("gloo")
    number, size = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    inputs = torch.randn(size, 16, 32)[number]

    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1, foreach=False)
    dist.barrier()
    begin = joblib.clocks()
    for _ in range(args.steps):
        optimizer.zero_grad(set_to_none=True)
        wrapped(inputs).square().mean().backward()
        optimizer.step()
    trained = joblib.clocks()

    # A fixed number of each, of sizes that name them.
    for _ in range(5):
        dist.all_reduce(torch.ones(1000))
    for _ in range(4):
        dist.broadcast(torch.full((2000,), float(number)), src=0)
    for _ in range(3):
        dist.all_gather([torch.empty(300) for _ in range(size)], torch.ones(300))
    for _ in range(2):
        dist.reduce(torch.ones(400), dst=0)
    for _ in range(6):
        dist.barrier()
    end = joblib.clocks()

    digest = joblib.Digest()
    for parameter in model.parameters():
        digest.add(parameter)
    bytes_of_model = sum(4 * p.numel() for p in model.parameters())
    joblib.tell(
        rank=number, world_size=size, begin=begin, trained=trained, end=end,
        # Before `begin`: DDP compares the shapes and copies rank 0's parameters.
        setup={"ProcessGroupGloo::allgather": {"calls": 1}, "ProcessGroupGloo::barrier": {"calls": 1},
               "ProcessGroupGloo::broadcast": {"calls": 4}},
        # One bucket holds the whole model. After the first step the reducer orders its
        # buckets anew and broadcasts their indices and sizes (Reducer::sync_bucket_indices).
        ddp={"ProcessGroupGloo::allreduce": {"calls": args.steps, "bytes": args.steps * bytes_of_model},
             "ProcessGroupGloo::broadcast": {"calls": 2}},
        by_hand={
            "ProcessGroupGloo::allreduce": {"calls": 5, "bytes": 5 * 4000},
            "ProcessGroupGloo::broadcast": {"calls": 4, "bytes": 4 * 8000},
            "ProcessGroupGloo::allgather": {"calls": 3, "bytes": 3 * 1200},
            "ProcessGroupGloo::reduce": {"calls": 2, "bytes": 2 * 1600},
            "ProcessGroupGloo::barrier": {"calls": 6, "bytes": 0},
        },
        sha256=digest.hex())
    # The Reducer must not be the last to hold the group: PyTorch 1.13 destroys that with the GIL
    # held then, and joins a thread that may need the GIL to let go of its last tensor.
    del wrapped
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
