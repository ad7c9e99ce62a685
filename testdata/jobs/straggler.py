#!/usr/bin/env python3
"""Ranks under gloo that all-reduce their gradients, one of which becomes slow.

From step --after on, or from its first SIGUSR1, rank --victim suffers from --fault: it
sleeps while it loads (loader), loads from a FIFO that is filled slowly (fifo), computes
in Python (python), collects garbage by force (gc), or allocates what it does not need
(allocations), or asks once for memory that no machine has, and goes on without (memory).
Or the job hangs: the victim asks for another collective than its peers (mismatch), or
begins to tear down, and is blocked in that (teardown). The parent starts the ranks with torchrun's
environment and ends them after --seconds, or after the step in which it gets a SIGTERM.
"""

import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import joblib


def main():
    parser = joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--victim", type=int, default=1)
    parser.add_argument("--after", type=int, default=100, help="steps without the fault")
    parser.add_argument("--fault", choices=("none", "loader", "fifo", "python", "gc", "allocations", "mismatch", "teardown", "memory"),
                        default="none")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--length", type=float, default=0, help="seconds of a step, at the least")
    parser.add_argument("--job", default="straggler")
    args = parser.parse_args()
    if "RANK" in os.environ:
        rank(args)
    else:
        launch(args)


def launch(args):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen([sys.executable, __file__] + sys.argv[1:], env=dict(
            os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(args.ranks),
            LOCAL_WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            TORCHELASTIC_RUN_ID=args.job, GLOO_SOCKET_IFNAME="lo"))
        for number in range(args.ranks)]
    signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in ranks])
    joblib.say("started " + " ".join(str(process.pid) for process in ranks))
    sys.exit(max(process.wait() for process in ranks))


def rank(args):
    import torch
    import torch.distributed as dist
    from torch import nn

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    signal.signal(signal.SIGUSR1, lambda *_: setattr(args, "after", 0))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    suffers = dist.get_rank() == args.victim
    step = 0

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 30

        def __getitem__(self, index):
            if suffers and args.fault == "loader" and step >= args.after:
                time.sleep(0.005)  # the planted line
            if suffers and args.fault == "fifo" and step >= args.after:
                os.read(slow, 1 << 12)
            return torch.randn(64), index

    def tokenize(batch):
        if suffers and args.fault == "python" and step >= args.after:
            end = time.perf_counter() + 0.03
            while time.perf_counter() < end:
                pass
        return batch

    def hoard(batch):
        if suffers and args.fault == "allocations" and step >= args.after:
            for _ in range(8):
                torch.zeros(1 << 21)  # 8 MiB, given back at once: each page is new
        return batch

    def ask():
        args.after = float("inf")
        try:
            torch.empty(1 << 50, dtype=torch.uint8)
        except RuntimeError:
            pass

    def teardown():
        time.sleep(1e6)

    def tidy():
        if suffers and args.fault == "gc" and step >= args.after:
            gc.collect()

    slow = slow_fifo() if suffers and args.fault == "fifo" else None
    kept = [[number] for number in range(300_000)] if args.fault == "gc" else []
    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.ReLU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dist.barrier()
    end = time.time() + args.seconds
    begin = time.monotonic()
    for batch, _ in torch.utils.data.DataLoader(Samples(), batch_size=8):
        if suffers and args.fault == "memory" and step >= args.after:
            ask()
        if suffers and args.fault == "teardown" and step >= args.after:
            teardown()
        model(hoard(tokenize(batch))).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        tidy()
        step += 1
        if step == 30 and dist.get_rank() == 0:
            joblib.say("running")  # the imports are over
        if suffers and args.fault == "mismatch" and step >= args.after:
            dist.broadcast(torch.ones(1), src=args.victim)
        over = torch.tensor([float(bool(stop) or time.time() > end)])
        dist.all_reduce(over)
        if over.item() > 0:
            break
        if args.length:
            time.sleep(max(0, begin + args.length - time.monotonic()))
            begin = time.monotonic()
    joblib.tell(rank=dist.get_rank(), steps=step, kept=len(kept))
    dist.destroy_process_group()


def slow_fifo():
    """A FIFO into which 4 KiB come every 5 ms, from a process that is none of the job's."""
    path = os.path.join(tempfile.mkdtemp(), "slow")
    os.mkfifo(path)
    fill = ("import sys, time\n"
            "with open(sys.argv[1], 'wb', buffering=0) as f:\n"
            "    while True:\n"
            "        f.write(bytes(4096)); time.sleep(0.005)\n")
    subprocess.Popen([sys.executable, "-c", fill, path])
    return os.open(path, os.O_RDONLY)


if __name__ == "__main__":
    main()
