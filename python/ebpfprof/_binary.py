"""The program: where it is, and how its errors reach Python."""

import functools
import os
import shutil
import subprocess
import sysconfig
from typing import Sequence


class Error(RuntimeError):
    """A command of ebpfprof failed. The message is its own sentence; ``code`` its exit code."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


def binary() -> str:
    """The path of the program: $EBPFPROF, else the one of this environment, else the one on PATH."""
    chosen = os.environ.get("EBPFPROF")
    if chosen:
        return chosen
    here = os.path.join(sysconfig.get_path("scripts"), "ebpfprof")
    if os.access(here, os.X_OK):
        return here
    # An installation for one user has a directory of scripts of its own.
    user = os.path.join(sysconfig.get_path("scripts", "posix_user"), "ebpfprof")
    if os.access(user, os.X_OK):
        return user
    found = shutil.which("ebpfprof")
    if found is None:
        raise Error("the program ebpfprof is missing: install the wheel again, or set EBPFPROF to its path", 127)
    return found


@functools.lru_cache(maxsize=None)
def version() -> str:
    """The program's version, such as ``0.2.0``."""
    return run(["--version"]).rsplit(None, 1)[-1]


def run(arguments: Sequence[str], accept: Sequence[int] = (0,)) -> str:
    """Runs a command and returns its standard output.

    Raises Error with what the command wrote to standard error if its exit code is not in ``accept``.
    """
    try:
        done = subprocess.run(
            [binary(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, "NO_COLOR": "1"}
        )
    except OSError as error:
        raise Error(f"{binary()} cannot be started: {error.strerror}", 126) from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode not in accept:
        raise Error(sentence(done.stderr.decode("utf-8", "replace")) or f"ebpfprof ended with {done.returncode}", done.returncode)
    return output


def sentence(text: str) -> str:
    """What a command wrote to standard error, without its name in front."""
    return "\n".join(line[len("ebpfprof: ") :] if line.startswith("ebpfprof: ") else line for line in text.strip().splitlines())
