#!/usr/bin/env python3
"""Ranks under gloo, one of which does not come to a collective for a while.

Every rank issues --before all-reduces of float32[1000] and waits for each; then rank
--victim sleeps until the file --until exists, or for --seconds; the others all-reduce float64[500] and wait for it. After
that all go on with a broadcast and end. Rank 0 tells what it knows.
"""

import os
import socket
import subprocess
import sys
import time

import joblib


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--victim", type=int, default=2)
    parser.add_argument("--before", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--until", metavar="PATH", default="")
    args = parser.parse_args()
    if "RANK" in os.environ:
        rank(args)
    else:
        launch(args)


def launch(args):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    joblib.ready(args)
    command = [a for a in sys.argv[1:] if a != "--wait"]
    ranks = [
        subprocess.Popen([sys.executable, __file__] + command, env=dict(
            os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(args.ranks),
            LOCAL_WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            TORCHELASTIC_RUN_ID="missing-job", GLOO_SOCKET_IFNAME="lo"))
        for number in range(args.ranks)]
    sys.exit(max(process.wait() for process in ranks))


def rank(args):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    number = dist.get_rank()
    for _ in range(args.before):
        dist.all_reduce(torch.ones(1000))
    if number == 0:
        joblib.say("before")
    if number == args.victim:
        dawdle(args.seconds, args.until)
    dist.all_reduce(torch.ones(500, dtype=torch.float64))  # the collective that waits
    dist.broadcast(torch.ones(20, 30, dtype=torch.int32), src=1)
    gathered = [torch.empty(7) for _ in range(args.ranks)]
    dist.all_gather(gathered, torch.ones(7))
    if number == 0:
        dist.send(torch.ones(11), dst=1)
    if number == 1:
        dist.recv(torch.empty(11), src=0)
    dist.barrier()
    if number == 0:
        joblib.tell(job="missing.py", pid=os.getpid(), torch=torch.__version__)
    dist.destroy_process_group()


def dawdle(seconds, until):
    end = time.monotonic() + seconds
    while not os.path.exists(until) if until else time.monotonic() < end:
        time.sleep(0.05)  # the line at which the victim is


if __name__ == "__main__":
    main()
