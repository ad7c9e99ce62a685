"""Some forty frames, Python's and native ones in turn, above a loop that stays in
the caches, until standard input ends."""
import functools
import os
import sys
import threading


class Module:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self, numbers):
        return self.forward(numbers)

    def forward(self, numbers):
        return self.inner(numbers) if self.inner else work(numbers)


def work(numbers):
    while not ended:
        sum(numbers)


def reduced(module):
    return lambda numbers: functools.reduce(lambda _, each: module(each), (0, numbers))


def listen():
    global ended
    sys.stdin.read()
    ended = True


ended = False
threading.Thread(target=listen, daemon=True).start()
model = None
for depth in range(12):
    model = Module(reduced(model) if depth % 3 == 2 else model)
print(f"ready {os.getpid()} 0", flush=True)
model(list(range(64)))
