"""Launches on the stub libcuda from a depth that is usual in a framework: as
modules call modules, with a C function between every few Python frames. For
each line of stdin it makes so many launches and prints ns a launch."""
import ctypes
import functools
import sys

library = ctypes.CDLL(sys.argv[1])
library.deep_launches.restype = ctypes.c_double
library.deep_setup()


class Module:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self, times):
        return self.call(times)

    def call(self, times):
        return self.forward(times)

    def forward(self, times):
        return self.inner(times) if self.inner else library.deep_launches(times)


def wrapped(module):
    return functools.partial(functools.reduce, lambda _, times: module(times))


def model(depth):
    inner = None
    for i in range(depth):
        inner = Module(inner)
        if i % 3 == 2:
            inner = functools.partial(lambda step, times: step((0, times)), wrapped(inner))
    return inner


step = model(3)
print("ready", flush=True)
for line in sys.stdin:
    print(f"{step(int(line)):.1f} ns", flush=True)
