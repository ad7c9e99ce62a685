"""Calls getppid(2) from known stacks and says which ones they were, as stacks.py does, with
nothing but what is built into every interpreter: no module that is a library of its own.
"""
import json
import os
import sys
import _thread

expected = {}


def note(label):
    """Remembers the caller's stack: what the next getppid has to show."""
    frame = sys._getframe(1)
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    expected.setdefault(_thread.get_native_id(), []).append([label, frames])


def plain(label="nested"):
    note(label); os.getppid()  # one line: noted and called from the same place


def nested(depth=5):
    if depth:
        return nested(depth - 1)
    return plain()


def generated():
    for _ in range(3):
        plain("generator")
        yield 1


class Compared:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        plain("sorted")
        return self.n < other.n


def run():
    nested()
    sum(generated())
    sorted([Compared(3), Compared(1), Compared(2)])


def thread(done):
    run()
    done.release()


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            continue
        run()
        done = _thread.allocate_lock()
        done.acquire()
        _thread.start_new_thread(thread, (done,))
        done.acquire()
        print(json.dumps(expected), flush=True)


main()
