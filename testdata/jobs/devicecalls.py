#!/usr/bin/env python3
"""Calls a stub runtime from known Python stacks and says which ones they were.

A launch carries a number in its shared bytes, which stands for the Python
frames that it was made from; an allocation likewise in its size. Nothing but
ctypes is between Python and the runtime. Runs on Python 3.8 and later.
"""
import ctypes
import functools
import os
import sys
import threading
import time

import joblib

numbers = {}
lock = threading.Lock()


def here():
    """The number of the caller's stack: leaf first, function and line."""
    frame = sys._getframe(1)
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    with lock:
        return numbers.setdefault(tuple(frames), len(numbers) + 1)


class CUDA:
    """The stub of libcuda."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.function, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.library.cuInit(0)
        self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.library.cuCtxSetCurrent(context)
        self.library.cuStreamCreate(ctypes.byref(self.stream), 0)
        self.library.cuModuleLoadData(ctypes.byref(module), b"image")
        self.library.cuModuleGetFunction(ctypes.byref(self.function), module, b"_Z5scalePfi")
        self.call = self.library.cuLaunchKernel
        self.allocate = self.library.cuMemAlloc_v2
        self.free = self.library.cuMemFree_v2
        self.free.argtypes = [ctypes.c_void_p]

    def launch(self, number):
        return (self.function, 1, 1, 1, 1, 1, 1, number, self.stream, None, None)


class HIP:
    """The stub of libamdhip64."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.function, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        module = ctypes.c_void_p()
        self.library.hipInit(0)
        self.library.hipSetDevice(0)
        self.library.hipStreamCreate(ctypes.byref(self.stream))
        self.library.hipModuleLoadData(ctypes.byref(module), b"image")
        self.library.hipModuleGetFunction(ctypes.byref(self.function), module, b"_Z5scalePfi")
        self.call = self.library.hipModuleLaunchKernel
        self.allocate = self.library.hipMalloc
        self.free = self.library.hipFree
        self.free.argtypes = [ctypes.c_void_p]

    def launch(self, number):
        return (self.function, 1, 1, 1, 1, 1, 1, number, self.stream, None, None)


def two_lines(device):
    device.call(*device.launch(here()))
    device.call(*device.launch(here()))


def recursion(device, depth):
    if depth:
        recursion(device, depth - 1)
    device.call(*device.launch(here()))


def helper(device):
    device.call(*device.launch(here()))


def between(device):
    helper(device)


def callers(device):
    between(device)
    between(device)
    for _ in range(2):
        between(device); between(device)  # one line, two instructions


class Layer:
    def __init__(self, device, inner=()):
        self.device, self.inner = device, inner

    def __call__(self, *_):
        for layer in self.inner:
            layer()
        self.forward()
        return 0

    def forward(self):
        helper(self.device)


def through_c(device):
    layer = Layer(device)
    functools.reduce(layer, [1, 2, 3])
    sorted([2, 1], key=layer)
    functools.reduce(lambda a, b: helper(device), [1, 2])


def generated(device):
    def inner():
        for i in range(2):
            device.call(*device.launch(here()))
            yield i

    list(inner())
    for _ in inner():
        helper(device)


def everything(device):
    two_lines(device)
    recursion(device, 12)
    callers(device)
    Layer(device, [Layer(device), Layer(device, [Layer(device)])])()
    through_c(device)
    generated(device)


SOURCE = "def made(device):{}\n  device.call(*device.launch(here()))"


def replaced(device, repeats):
    """A code object after the other, often where the one before was: the same
    address and instruction, another line."""
    scope = {"here": here}
    for i in range(repeats):
        scope.pop("made", None)
        exec(compile(SOURCE.format("\n" * (i % 3)), "made.py", "exec"), scope)
        scope["made"](device)


def allocations(device):
    """Some that succeed, some that do not."""
    pointer = ctypes.c_void_p()

    def succeed():
        device.allocate(ctypes.byref(pointer), ctypes.c_size_t(4096 * here()))
        device.free(pointer)

    def fail():
        device.allocate(ctypes.byref(pointer), ctypes.c_size_t((1 << 40) + 4096 * here()))

    for _ in range(3):
        succeed()
        fail()


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--runtime", choices=("cuda", "hip"), default="cuda")
    parser.add_argument("--library", required=True, help="of the stub")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--linger", type=float, default=1, help="seconds before the end")
    parser.add_argument("--replace", action="store_true", help="replace code objects while launching")
    args = parser.parse_args()
    device = {"cuda": CUDA, "hip": HIP}[args.runtime](args.library)
    joblib.ready(args)

    def failed(thrown):
        sys.__excepthook__(thrown.exc_type, thrown.exc_value, thrown.exc_traceback)
        os._exit(1)

    threading.excepthook = failed

    def work():
        for _ in range(args.repeats):
            everything(device)

    if args.replace:
        replaced(device, args.repeats)
    else:
        threads = [threading.Thread(target=work) for _ in range(args.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        allocations(device)
    time.sleep(args.linger)
    joblib.tell(job="devicecalls.py", numbers={n: [f"{name}:{line}" for name, line in frames]
                                               for frames, n in numbers.items()})


if __name__ == "__main__":
    main()
