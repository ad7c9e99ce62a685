"""Run inside gdb: each time that the process which gdb is attached to is stopped by
SIGINT, sends what gdb makes of the stacks of its main thread and of another, a JSON
object a line and then an empty line, to the socket EBPFPROF_STOPS_SOCKET. It waits
for a line before it lets the process go on, so that the other side can read the
process's memory meanwhile; that side sends the signals."""
import json
import os
import random
import socket

import gdb

REGISTERS = ("rip", "rsp", "rbp", "r10", "r13")
MASK = 2**64 - 1
# What gdb knows from debugging information and the stack does not have: inlined
# calls, and functions that left by a jump.
NO_FRAMES = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


def register(frame, name):
    return int(frame.read_register(name)) & MASK


def stack(thread):
    thread.switch()
    frame = gdb.newest_frame()
    found = {name: register(frame, name) for name in REGISTERS}
    found["tid"] = thread.ptid[1]
    found["frames"] = []
    while frame is not None and len(found["frames"]) < 128:
        if frame.type() not in NO_FRAMES:
            found["frames"].append({"pc": frame.pc(), "sp": register(frame, "rsp")})
        reason, older = frame.unwind_stop_reason(), frame.older()
        if older is None:
            found["reason"] = gdb.frame_stop_reason_string(reason)
        frame = older
    return found


def main():
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(os.environ["EBPFPROF_STOPS_SOCKET"])
    lines = channel.makefile("rw")
    random.seed(int(os.environ.get("EBPFPROF_STOPS_SEED", "1")))
    for setting in ("pagination off", "confirm off", "backtrace past-main on", "backtrace past-entry on", "print inferior-events off"):
        gdb.execute("set " + setting)
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    process = gdb.selected_inferior()
    sent = 0
    while sent < int(os.environ["EBPFPROF_STOPS"]):
        gdb.execute("continue", to_string=True)
        if not process.is_valid() or not process.pid:
            break
        threads = sorted(process.threads(), key=lambda t: t.num)
        for thread in {threads[0].num: threads[0], (other := random.choice(threads)).num: other}.values():
            json.dump(stack(thread), lines)
            lines.write("\n")
            sent += 1
        lines.write("\n")
        lines.flush()
        lines.readline()
    gdb.execute("detach", to_string=True)
    channel.close()


main()
