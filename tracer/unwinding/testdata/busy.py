"""Many kinds of C frames under Python ones: sorting, regular expressions, JSON,
pickling, callbacks from C into Python, and a thread that mostly waits."""
import functools
import json
import os
import pickle
import re
import threading
import time
import zlib


def deep(n, then):
    return then() if n == 0 else deep(n - 1, then)


class Key:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value


def work():
    values = [Key(i * 7919 % 1009) for i in range(300)]
    values.sort()
    data = {"values": [v.value for v in values], "text": "x" * 1000}
    text = json.dumps(data, indent=1)
    json.loads(text)
    pickle.loads(pickle.dumps(data))
    re.sub(r"(\d+)(?=\d{2})", lambda m: m.group(1)[::-1], text)
    functools.reduce(lambda a, b: a + b, map(len, text.split()))
    zlib.compress(text.encode())


def wait():
    while True:
        time.sleep(0.001)


threading.Thread(target=wait, daemon=True).start()
print("ready", os.getpid(), flush=True)
while True:
    deep(20, work)
