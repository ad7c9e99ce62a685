"""`%%ebpfprof`: records while a cell runs, and shows the report."""

import shlex
from typing import Any

from ._recording import record


def register(shell: Any) -> None:
    shell.register_magic_function(_cell(shell), magic_kind="cell", magic_name="ebpfprof")


def _cell(shell: Any) -> Any:
    def ebpfprof(line: str, cell: str) -> Any:
        """%%ebpfprof [--level LEVEL …]: records while the cell runs; the options are those of attach."""
        options = {}
        for word in shlex.split(line):
            name, _, value = word.lstrip("-").partition("=")
            options[name] = value or True
        with record(**options) as recording:
            shell.run_cell(cell)
        return recording.dataset.report() if recording.dataset else None

    return ebpfprof
