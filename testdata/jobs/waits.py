#!/usr/bin/env python3
"""Threads that are off the CPU without a system call: they wait for pages that
come late (userfaultfd), for a CPU that another process uses, or are stopped by
a signal. Tells both ends of each wait for a page, the time waited for the CPU,
and when it was stopped.
"""

import argparse
import ctypes
import fcntl
import mmap
import os
import signal
import struct
import subprocess
import sys
import threading
import time

import joblib

PAGE = 4096
USERFAULTFD = {"x86_64": 323, "aarch64": 282}
# include/uapi/linux/userfaultfd.h
UFFD_API, UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xAA, 0xC018AA3F, 0xC020AA00, 0xC020AA04
REGISTER_MODE_MISSING = 1
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def late_pages(pages, delay):
    """Memory each of whose pages comes so many seconds after it is asked for."""
    fd = libc.syscall(USERFAULTFD[os.uname().machine], os.O_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    fcntl.ioctl(fd, UFFDIO_API, struct.pack("QQQ", UFFD_API, 0, 0))
    start = libc.mmap(None, pages * PAGE, 3, 0x22, -1, 0)
    fcntl.ioctl(fd, UFFDIO_REGISTER, struct.pack("QQQQ", start, pages * PAGE, REGISTER_MODE_MISSING, 0))

    def serve():
        while True:
            address = struct.unpack_from("Q", os.read(fd, 32), 16)[0]
            time.sleep(delay)
            fcntl.ioctl(fd, UFFDIO_ZEROPAGE, struct.pack("QQQq", address & -PAGE, PAGE, 0, 0))

    threading.Thread(target=serve, daemon=True).start()
    return start


def touch(address):
    """Reads a byte, without the GIL."""
    before = time.monotonic_ns()
    libc.memchr(address, 1, 1)
    return before, time.monotonic_ns()


SPINS, ENOUGH = 0, 1  # bytes of a page that is shared with who stops the job


def spin(seconds, page=bytearray((False, True))):
    """Runs for so long, and until the page says that it is enough."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end or not page[ENOUGH]:
        page[SPINS] = True
        n += 1


def state(pid):
    """What /proc/PID/stat says after the name: R, S, T, ..."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def stop_while_it_spins(seconds, page):
    """A process that stops this one, for at least so long. Not before this one is
    in spin, whose page tells: it makes no system call there. The time begins when
    it has stopped: a thread that waits for a CPU does so only when it has got one."""
    job, pid = os.getpid(), os.fork()
    if pid:
        return pid
    while not page[SPINS]:
        time.sleep(0.001)
    os.kill(job, signal.SIGSTOP)
    while state(job) != "T":
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(job, signal.SIGCONT)
    page[ENOUGH] = True
    os._exit(0)


def queued_ns():
    """For how long this thread has been ready to run and was not running."""
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])


def main():
    parser = joblib.waiting(argparse.ArgumentParser(description=__doc__))
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--delay", type=float, default=0.005)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--stop", type=float, default=0.1)
    args = parser.parse_args()
    start = late_pages(args.pages, args.delay)
    os.sched_setaffinity(0, {0})
    joblib.ready(args)
    begin = joblib.clocks()
    sleeps = [touch(start + i * PAGE) for i in range(args.pages)]

    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    rivalry, before = time.monotonic_ns(), queued_ns()
    spin(args.seconds)
    queued, rivalry = queued_ns() - before, (rivalry, time.monotonic_ns())
    rival.kill()
    rival.wait()

    page = mmap.mmap(-1, mmap.PAGESIZE)
    stopper = stop_while_it_spins(args.stop, page)
    spin(0.2, page)
    os.waitpid(stopper, 0)
    joblib.tell(job="waits.py", begin=begin, end=joblib.clocks(), sleeps=sleeps, sleep_ns=int(args.delay * 1e9),
                rivalry=rivalry, queued_ns=queued, stopped_ns=int(args.stop * 1e9))


if __name__ == "__main__":
    main()
