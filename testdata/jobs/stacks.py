"""Calls getppid(2) from known stacks and says which ones they were.

Prints "ready" and does what it reads on stdin: "run" runs every case and prints
one JSON object {tid: [[label, [[function, file, line], ...]], ...]} with the
frames leaf first; main() has the others. Runs on Python 3.8 and later.
"""
import _thread
import ctypes
import functools
import gc
import json
import os
import sys
import threading
import time

released = ctypes.CDLL(None).getppid  # CDLL lets go of the GIL around the call
kept = ctypes.PyDLL(None).getppid
expected = {}


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def note(label):
    """Remembers the caller's stack: what the next getppid has to show."""
    frame = sys._getframe(1)
    frames = []
    while frame is not None:
        frames.append([name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    expected.setdefault(threading.get_native_id(), []).append([label, frames])


def plain(label="nested"):
    note(label); os.getppid()  # one line: noted and called from the same place


def nested():
    def middle(depth):
        if depth:
            return middle(
                depth
                - 1
            )
        return plain()

    middle(5)


def callbacks():
    sorted([3, 1, 2], key=lambda n: plain("sorted") or n)
    functools.reduce(lambda a, b: plain("reduce") or a, [1, 2, 3])
    max([1, 2], key=functools.partial(lambda x, n: functools.reduce(lambda a, b: plain("both") or 0, [n, x, 3]), 1))

    class Callable:
        def __call__(self, *args):
            note("call"); os.getppid()

        def __getattr__(self, name):
            note("getattr"); os.getppid()
            return name

        @property
        def prop(self):
            note("property"); os.getppid()

        def __enter__(self):
            return self

        def __exit__(self, *error):
            note("exit"); released()
            return True

        def __lt__(self, other):
            return functools.reduce(lambda a, b: bool(plain("lt")), [1, 2])

    c = Callable()
    c()
    list(map(c, [1, 2]))
    c.missing
    c.prop
    sorted([Callable(), Callable()])
    with c:
        raise ValueError("leaves through __exit__")


def generators():
    def inner(n):
        for i in range(n):
            note("generator"); os.getppid()
            yield i

    def outer(n):
        yield from inner(n)

    sum(outer(2))
    [plain("comprehension") for _ in range(2)]
    list(plain("expression") for _ in range(2))
    next(i for i in outer(1))

    async def waited():
        note("coroutine"); released()
        return 1

    async def waiting():
        return await waited()

    try:
        waiting().send(None)
    except StopIteration:
        pass


def exceptions():
    try:
        try:
            raise KeyError(1)
        except KeyError:
            plain("except")
            raise ValueError from None
        finally:
            plain("finally")
    except ValueError:
        note("handler"); released()


def recursion(depth, call):
    if depth == 0:
        note("recursion"); call()
        return 0
    return 1 + recursion(depth - 1, call)


def through_c(depth):
    """Every Python frame has its own run of the interpreter loop."""
    if depth == 0:
        note("through_c"); os.getppid()
        return 0
    return functools.reduce(lambda a, b: through_c(depth - 1), [1, 2])


SOURCE = """
def {name}(call):
    note("{label}"); call()

class {name}Class:
    def méthode(self, call):
        {name}(call)

{name}Class().méthode(os.getppid)
{name}Class().méthode(released)
"""
kept_alive = []


def names():
    for name, file in [
        ("ascii", "plain.py"),
        ("é", "modèle.py"),  # Latin-1
        ("日本語", "訓練/模型.py"),  # UCS-2
        ("𐌰𐌱", "😀/𐌰.py"),  # UCS-4
        ("long" * 60, "directory/" * 100 + "file.py"),
    ]:
        code = compile(SOURCE.format(name=name, label=name[:8]), file, "exec")
        kept_alive.append(code)
        scope = {"note": note, "os": os, "released": released}
        kept_alive.append(scope)
        exec(code, scope)


def collecting():
    class Finalized:
        def __del__(self):
            note("in_gc"); os.getppid()

    a = Finalized()
    a.cycle = a
    del a
    gc.collect()


def without_gil():
    note("released"); released()
    note("kept"); kept()


def threads():
    def work(n):
        recursion(n, released)
        without_gil()
        nested()

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


def sleeper(stop):
    while not stop.is_set():
        time.sleep(0.002)


def spin(stop):
    n = 0
    while not stop[0]:
        n += 1
    return n


def spinner(stop):
    functools.reduce(lambda a, b: spin(stop), [1, 2])


class Churn:
    """Calls of every kind, as short as can be: a thread is mostly on its way
    into or out of a frame. Each calls the next in the alphabet, or nothing."""

    def a(self):
        for _ in range(50):
            self.b(1)

    def b(self, n, *rest, key=None):
        return functools.reduce(self.c, (1, 2, 3))

    def c(self, x, y):
        for _ in self.d(2):
            pass
        return self.d_twin()

    def d(self, n):
        for i in range(n):
            yield self.e(i)

    def d_twin(self):
        return self

    def e(self, i):
        try:
            return self.f(*(i,), key=i)
        except ValueError:
            return None

    def f(self, i, key):
        if i:
            raise ValueError(i)
        return sorted([2, 1], key=self.g)

    def g(self, n):
        return -n


def churner(stop):
    churn = Churn()
    while not stop[0]:
        churn.a()


def run():
    nested()
    callbacks()
    generators()
    exceptions()
    recursion(40, os.getppid)
    recursion(200, os.getppid)
    through_c(20)
    through_c(90)
    names()
    collecting()
    without_gil()
    threads()
    nested()


def child():
    """After a fork: its parent's interpreter, thread state and key."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(r, 1)
        expected.clear()
        nested()
        worker = threading.Thread(target=nested)
        worker.start()
        worker.join()
        print(json.dumps(expected), flush=True)
        os.read(r, 1)
        os._exit(0)
    print(pid, flush=True)
    sys.stdin.readline()
    os.write(w, b"x")
    sys.stdin.readline()
    os.write(w, b"x")
    os.waitpid(pid, 0)


class Waiting:
    def __init__(self, pipe):
        self.pipe = pipe

    def __call__(self, *_):
        note("waiting"); os.read(self.pipe, 1)
        return 1


def waiting(pipe):
    """C and generators in between, every kind of name at the end."""
    scope = {"Waiting": Waiting, "functools": functools}
    for name, file in [("ascii", "plain.py"), ("é", "modèle.py"), ("日本語", "訓練/模型.py"), ("𐌰𐌱", "😀/𐌰.py")]:
        source = f"def {name}(f, *rest):\n\n    return functools.reduce(lambda a, b: f(*rest), [1, 2])"
        exec(compile(source, file, "exec"), scope)
    generator = (scope["ascii"](scope["é"], scope["日本語"], scope["𐌰𐌱"], Waiting(pipe)) for _ in range(1))
    recursed(10, generator)


def recursed(depth, generator):
    return recursed(depth - 1, generator) if depth else sum(generator)


def wait():
    """A thread that stands still in a stack that it noted, and its pthread_self."""
    r, w = os.pipe()
    expected.clear()
    identity = _thread.start_new_thread(waiting, (r,))
    while not expected:
        time.sleep(0.01)
    time.sleep(0.1)
    print(json.dumps(expected), flush=True)
    print(identity, flush=True)
    sys.stdin.readline()
    os.write(w, b"x")
    time.sleep(0.05)


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        command = line.strip()
        if command == "run":
            run()
            print(json.dumps(expected), flush=True)
        elif command == "wait":
            wait()
        elif command == "fork":
            child()
        elif command in ("sleep", "spin", "churn"):
            stop, stopped = threading.Event(), [False]
            target = {"sleep": sleeper, "spin": spinner, "churn": churner}[command]
            argument = stop if command == "sleep" else stopped
            thread = threading.Thread(target=target, args=(argument,))
            thread.start()
            print(thread.native_id, flush=True)
            sys.stdin.readline()
            stop.set()
            stopped[0] = True
            thread.join()


if __name__ == "__main__":
    main()
