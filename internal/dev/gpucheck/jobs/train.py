"""A training step on a GPU: train.py STEPS profile|time|graph

After "ready PID" it waits for a line on standard input, then does STEPS steps,
and tells what they were: with `profile` what torch.profiler counted, launch by
launch, with `graph` how often it replayed a captured step, with `time` only how
long it took.
"""
import json
import os
import sys
import tempfile
import time
from collections import Counter

import torch

steps, mode = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(7)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
    torch.nn.Linear(16 * 15 * 15, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 10),
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=mode == "graph")
images, labels = torch.randn(64, 3, 32, 32).pin_memory(), torch.randint(10, (64,)).pin_memory()
on_device, targets = images.cuda(), labels.cuda()


def train_step():
    if mode != "graph":
        on_device.copy_(images, non_blocking=True)
        targets.copy_(labels, non_blocking=True)
    optimizer.zero_grad(set_to_none=mode != "graph")
    loss = torch.nn.functional.cross_entropy(model(on_device), targets)
    loss.backward()
    optimizer.step()
    return loss


def capture():
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            train_step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step()
    return graph


def wait():
    torch.cuda.synchronize()
    print(f"ready {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(2)


def timed(work):
    torch.cuda.synchronize()
    begin = time.monotonic_ns()
    for _ in range(steps):
        work()
    torch.cuda.synchronize()
    return {"begin_ns": begin, "end_ns": time.monotonic_ns()}


def device_work(profile):
    """What the profiler saw run on the device, by the category of its trace."""
    path = os.path.join(tempfile.mkdtemp(), "trace.json")
    profile.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    kernels = Counter(e["name"] for e in events if e.get("cat") == "kernel")
    calls = Counter(e["name"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver"))
    return {
        "launches": kernels,
        "copies": sum(e.get("cat") == "gpu_memcpy" for e in events),
        "graph_launches": calls["cudaGraphLaunch"] + calls["cuGraphLaunch"],
    }


for _ in range(5):
    train_step()
told = {}
if mode == "profile":
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
        train_step()  # what the profiler does once, it does here
    wait()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        told = timed(train_step)
    told.update(device_work(profiler))
elif mode == "graph":
    captured = capture()
    wait()
    told = timed(captured.replay)
    told["graph_launches"] = steps
else:
    wait()
    told = timed(train_step)
told["seconds"] = (told["end_ns"] - told["begin_ns"]) / 1e9
told["versions"] = {
    "torch": torch.__version__, "cuda": torch.version.cuda or "", "python": sys.version.split()[0],
    "device": torch.cuda.get_device_name(), "capability": ".".join(map(str, torch.cuda.get_device_capability())),
}
print(json.dumps({"told": told}), flush=True)
sys.stdin.readline()
