"""Recordings: `ebpfprof attach` on a process while a block runs."""

import os
import signal
import subprocess
import tempfile
import threading
from typing import Any, List, Optional

from ._binary import Error, binary, sentence
from ._dataset import Dataset, _flags


# The exit code of a recording in which no call, sample or wait fell: there is a dataset all the same.
_NOTHING_CAPTURED = 5


class Recording:
    """A recording that goes on until the block ends. ``dataset`` is there afterwards."""

    def __init__(self, command: List[str], output: str):
        self._command, self._output = command, output
        self._process: Optional[subprocess.Popen] = None
        self._said: List[str] = []
        self._attached = threading.Event()
        self.dataset: Optional[Dataset] = None

    def __enter__(self) -> "Recording":
        try:
            # A session of its own: Ctrl-C reaches this process alone, which ends the recording.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise Error(f"{self._command[0]} cannot be started: {error.strerror}", 126) from error
        self._reader = threading.Thread(target=self._listen, daemon=True, name="ebpfprof")
        self._reader.start()
        self._attached.wait()
        if self._process.poll() is not None:
            self._end()
        return self

    def __exit__(self, _type: Any, raised: Any, _trace: Any) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
            try:
                self._end()
            except Error:
                if raised is None:  # else what the block raised is what is seen
                    raise

    def _listen(self) -> None:
        """Keeps what the program says, and notices when its probes are in, or that it ended."""
        assert self._process is not None and self._process.stderr is not None
        for line in self._process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            self._said = [*self._said[-99:], text]
            if text.startswith("attached in "):
                self._attached.set()
        self._process.wait()
        self._attached.set()

    def _end(self) -> None:
        assert self._process is not None
        code, self._process = self._process.wait(), None
        self._reader.join()
        if code not in (0, _NOTHING_CAPTURED):
            raise Error(sentence("\n".join(self._said)) or f"the recording ended with {code}", code)
        self.dataset = Dataset(self._output)


def record(pid: Optional[int] = None, output: Optional[str] = None, **options: Any) -> Recording:
    """Records a process, this one by default, while a ``with`` block runs.

    ``output`` is the dataset's directory, a temporary one by default. Options are those of
    ``ebpfprof attach``: ``record(level="samples")``. Raises Error where rights are missing.
    """
    if output is None:
        output = os.path.join(tempfile.mkdtemp(prefix="ebpfprof-"), "dataset")
    command = [binary(), "attach", "--pid", str(os.getpid() if pid is None else pid), "--output", output]
    return Recording([*command, "--no-verdict", *_flags(options)], output)
