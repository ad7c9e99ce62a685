"""A loader that reads files of 1 MiB from two directories, one after the other and again,
and says what it read from each: calls, bytes, and the time by its own clock. Then it maps
a file that is not in the page cache and touches it page by page: the major faults are the
kernel's own count.
"""

import argparse
import mmap
import os
import resource
import time

import joblib

SIZE = 1 << 20
# Names are anybody's to choose.
ODD = os.fsencode("odd\n\x1b[2J ") + b"\xff"


def make(directory, count):
    paths = [os.path.join(os.fsencode(directory), b"%d" % i) for i in range(count - 2)]
    paths.append(os.path.join(os.fsencode(directory), ODD))
    deep = os.path.join(os.fsencode(directory), *[b"d" * 60] * 12)
    os.makedirs(deep)
    paths.append(os.path.join(deep, b"deep"))
    for path in paths:
        with open(path, "wb") as f:
            f.write(b"x" * SIZE)
            os.fsync(f.fileno())
    return paths


def read(path):
    """Calls, bytes and nanoseconds."""
    fd = os.open(path, os.O_RDONLY)
    calls = got = spent = 0
    while True:
        begin = time.monotonic_ns()
        n = len(os.read(fd, SIZE))
        spent += time.monotonic_ns() - begin
        calls += 1
        got += n
        if not n:
            break
    os.close(fd)
    return calls, got, spent


def touch(path):
    """The major faults of a thread that looks at a byte of each page of a cold file."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(fd, SIZE, prot=mmap.PROT_READ) as mapped:
        mapped.madvise(mmap.MADV_RANDOM)  # one page at a time
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
        for at in range(0, SIZE, mmap.PAGESIZE):
            mapped[at]
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_majflt - before
    os.close(fd)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs=2)
    parser.add_argument("--files", type=int, default=20, help="in each directory")
    parser.add_argument("--rounds", type=int, default=2)
    joblib.waiting(parser)
    args = parser.parse_args()
    files = {directory: make(directory, args.files) for directory in args.directories}
    joblib.ready(args)
    begin = joblib.clocks()
    told = {}
    for directory, paths in files.items():
        done = [read(path) for _ in range(args.rounds) for path in paths]
        told[directory] = dict(zip(("calls", "bytes", "ns"), map(sum, zip(*done))))
    faults = touch(files[args.directories[1]][0])
    joblib.tell(begin=begin, end=joblib.clocks(), loaded=told, faults=faults)


if __name__ == "__main__":
    main()
