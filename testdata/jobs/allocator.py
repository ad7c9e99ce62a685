#!/usr/bin/env python3
"""A training step that makes 50,000 allocator events a second.

Half of them are storages of CPU tensors, half the reports of a caching
allocator of a device: made-up memory, told to PyTorch's own
c10::reportMemoryUsageToProfiler, which every device allocator calls, with the
totals that such an allocator keeps. The rest of the step is arithmetic.

--log FILE gets four native 64-bit integers for each report, in order: address,
bytes (negative: freed), bytes in use, bytes reserved. No address comes twice.
"""

import array
import ctypes
import glob
import os
import time

import torch
from torch import nn

import joblib

SEGMENT = 2 << 20
DEVICE = 1  # c10::Device of two bytes: type CUDA, index 0


class CachingAllocator:
    """Books like those of a device's caching allocator, and its reports."""

    def __init__(self, log):
        library = glob.glob(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
        c10 = ctypes.CDLL(library[0] if library else "libc10.so")
        name = "_ZN3c1027reportMemoryUsageToProfilerEPvl%sNS_6DeviceE"
        self.report = getattr(c10, name % "mm", None) or c10[name % "ll"]  # 2.x, 1.13
        self.report.restype = None
        self.report.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t,
                                ctypes.c_size_t, ctypes.c_uint16)
        self.address, self.live, self.reserved = 0x7000_0000_0000, 0, 0
        self.log = log

    def tell(self, address, size):
        self.live += size
        while self.reserved < self.live:
            self.reserved += SEGMENT
        if self.log is not None:
            self.log.extend((address, size, self.live, self.reserved))
        self.report(address, size, self.live, self.reserved, DEVICE)

    def allocate(self, size):
        self.address += 512
        self.tell(self.address, size)
        return self.address, size

    def free(self, block):
        self.tell(block[0], -block[1])


def main():
    parser = joblib.options(__doc__.splitlines()[0], steps=500, warmup=20)
    parser.add_argument("--events", type=int, default=200, help="a step, beside those of the model")
    parser.add_argument("--rate", type=float, default=50000, help="events a second")
    parser.add_argument("--log", metavar="FILE", help="every report of the device's allocator")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(40)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    criterion = nn.CrossEntropyLoss()
    log = array.array("q") if args.log else None
    device = CachingAllocator(log)
    kept = [device.allocate(1000 * n) for n in range(1, 50)]  # a model's parameters
    left, right, product = torch.randn(1000), torch.randn(1000), torch.empty(1000)

    def events():
        for n in range(args.events // 4):
            tensor = torch.empty(64 + n)
            block = device.allocate(512 * (n + 1))
            kept.append(block)
            device.free(kept.pop(-3))
            del tensor

    def work():
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        events()
        return loss.detach()

    # As much arithmetic as makes the step last so that the rate comes out.
    def timed(repeat, f):
        best = None
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(repeat):
                f()
            took = (time.perf_counter() - start) / repeat
            best = took if best is None else min(best, took)
        return best

    multiply = lambda: torch.mul(left, right, out=product)  # noqa: E731
    spare = args.events / args.rate - timed(20, work)
    products = max(0, round(spare / timed(100, multiply)))

    def step():
        loss = work()
        for _ in range(products):
            multiply()
        return loss

    joblib.train(args, model, step, scopes={})
    if log is not None:
        with open(args.log, "wb") as out:
            log.tofile(out)


if __name__ == "__main__":
    main()
