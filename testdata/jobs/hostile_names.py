"""A job whose names would move a terminal's cursor: its program (argv and comm), threads, functions, files, modules."""
import ctypes, sys, threading, time

EVIL = "\x1b[31mRED\x1b]0;title\x07\x9b2J\x7f\n\u202eend"
libc = ctypes.CDLL(None)


def burn():
    end = time.monotonic() + 600
    while time.monotonic() < end:
        sum(i * i for i in range(1000))


def evil_function():
    code = compile("def f(burn):\n    burn()\n", "/tmp/" + EVIL + "/site-packages/" + EVIL + ".py", "exec")
    scope = {}
    exec(code, scope)
    function = scope["f"]
    names = {"co_name": EVIL}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = EVIL
    function.__code__ = function.__code__.replace(**names)
    return function


def thread():
    libc.prctl(15, EVIL.encode()[:15], 0, 0, 0)
    evil_function()(burn)


threading.Thread(target=thread, daemon=True).start()
print("ready", flush=True)
evil_function()(burn)
