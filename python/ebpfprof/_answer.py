"""Answers: one command each, as text, as JSON, and as HTML in a notebook."""

import functools
import html
import json
from typing import Any, Optional, Sequence

from ._binary import run


class Answer:
    """What one command says. Nothing runs before it is looked at, and no form runs twice.

    ``str(answer)`` is the text of the terminal, ``answer.json`` the document of ``--json``,
    ``answer.code`` the command's exit code, and a notebook shows HTML. ``answer.command`` is
    the command line that gives the same.
    """

    def __init__(self, arguments: Sequence[str], page: Optional[Sequence[str]] = None, accept: Sequence[int] = (0,)):
        self._arguments, self._page, self._accept = list(arguments), page, tuple(accept)

    @property
    def command(self) -> list:
        return ["ebpfprof", *self._arguments]

    @functools.cached_property
    def text(self) -> str:
        return run(self._arguments, self._accept)

    @functools.cached_property
    def json(self) -> Any:
        return json.loads(run([*self._arguments, "--json"], self._accept))

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self._page is None:
            return f"<pre>{html.escape(self.text)}</pre>"
        page = run([*self._arguments, *self._page], self._accept)
        # A frame of its own: the page's styles stay inside, and what it loads or runs is nothing.
        return (
            f'<iframe sandbox srcdoc="{html.escape(page)}" style="width: 100%; height: 32em; border: 0"'
            f' title="{html.escape(" ".join(self.command))}"></iframe>'
        )
