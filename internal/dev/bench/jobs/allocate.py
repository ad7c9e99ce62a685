"""Makes allocations when it is told to, and says how long the median one of each size took: allocate.py LIBRARY SIZES COUNT.

LIBRARY is testdata/native/allocatetimes.c. Nothing here knows about a tracer.
"""

import ctypes
import json
import os
import statistics
import sys

import torch

library, sizes, count = sys.argv[1], [int(size) for size in sys.argv[2].split(",")], int(sys.argv[3])
c10 = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
run = ctypes.CDLL(library).allocate_times
getter = ctypes.cast(c10._ZN3c1015GetCPUAllocatorEv, ctypes.c_void_p)
Sizes = ctypes.c_uint64 * len(sizes)
Times = ctypes.c_uint64 * (count * len(sizes))


def times():
    allocated, freed = Times(), Times()
    if run(getter, Sizes(*sizes), len(sizes), count, allocated, freed):
        sys.exit("the allocator is not laid out as it was thought to be")
    return {"alloc": medians(allocated), "free": medians(freed)}


def medians(all_times):
    return [statistics.median_high(all_times[k * count:(k + 1) * count]) for k in range(len(sizes))]


times()
print("ready", os.getpid(), 1, flush=True)
for line in sys.stdin:
    if line.strip() == "times":
        print(json.dumps(times()), flush=True)
