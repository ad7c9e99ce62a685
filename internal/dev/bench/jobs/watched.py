"""Does much of what costs a recording without hits of probes, and prints for each step when it ended, how long it took and the CPU
time of the process and its children so far, seconds: watched.py starts|threads|switches. It ends with its standard input."""
import os
import subprocess
import sys
import threading
import time


def starts():
    """Short programs one after the other, as a metric's script or a decoder is."""
    while True:
        for _ in range(4):
            subprocess.run([sys.executable, "-c", "import json; print(json.dumps({}))"], stdout=subprocess.DEVNULL, check=True)
        yield


def threads():
    """More threads than the machine has CPUs."""
    import torch
    torch.set_num_threads(8 * os.cpu_count())
    net = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(8)])
    optimizer = torch.optim.AdamW(net.parameters())
    while True:
        optimizer.zero_grad()
        net(torch.randn(512, 128)).square().mean().backward()
        optimizer.step()
        yield


def switches():
    """Two processes that answer each other through pipes, as queues of small items do."""
    there, here = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there[1]), os.close(here[0])  # it ends with its parent
        while os.read(there[0], 1):
            os.write(here[1], b"x")
        os._exit(0)
    os.close(there[0]), os.close(here[1])
    while True:
        for _ in range(2000):
            os.write(there[1], b"x"), os.read(here[0], 1)
        yield


threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
last = time.monotonic()
for _ in {"starts": starts, "threads": threads, "switches": switches}[sys.argv[1]]():
    now = time.monotonic()
    print(now, now - last, sum(os.times()[:4]), flush=True)
    last = now
