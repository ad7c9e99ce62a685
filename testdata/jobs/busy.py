#!/usr/bin/env python3
"""Uses known amounts of the machine: processor time on one CPU, bytes through
the loopback interface, bytes written to disk."""

import os
import resource
import socket
import tempfile
import threading

import joblib


def spin(seconds):
    """Uses so much processor time of this process."""
    end = os.times().user + seconds
    n = 0
    while os.times().user < end:
        for _ in range(10000):
            n += 1


def send(size):
    """Sends bytes to a thread of ours through the loopback interface."""
    listener = socket.create_server(("127.0.0.1", 0))

    def receive():
        connection, _ = listener.accept()
        while connection.recv(1 << 20):
            pass

    thread = threading.Thread(target=receive)
    thread.start()
    with socket.create_connection(listener.getsockname()) as connection:
        block = bytes(1 << 20)
        for _ in range(size >> 20):
            connection.sendall(block)
    thread.join()
    listener.close()


def write(directory, size):
    """Writes bytes that no file system could compress or leave in memory."""
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())


def main():
    parser = joblib.waiting(joblib.argparse.ArgumentParser(
        description=__doc__.splitlines()[0]))
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--directory", default=".")
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.cpu})
    import torch

    joblib.ready(args)
    before = resource.getrusage(resource.RUSAGE_SELF)
    torch.ones(3).sum()
    spin(args.seconds / 2)
    send(args.megabytes << 20)
    write(args.directory, args.megabytes << 20)
    spin(args.seconds / 2)
    after = resource.getrusage(resource.RUSAGE_SELF)
    joblib.tell(job="busy.py", bytes=args.megabytes << 20,
                user_ns=int((after.ru_utime - before.ru_utime) * 1e9))


if __name__ == "__main__":
    main()
