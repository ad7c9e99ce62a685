"""Datasets: the answers about a recording, and its tables."""

import functools
import os
from typing import Any, List, Union

from ._answer import Answer
from ._binary import Error, run

Path = Union[str, "os.PathLike[str]"]

# Exit codes of diff that are answers: neutral or improvement, regression, inconclusive.
_COMPARED = (0, 10, 12)


def open(path: Path) -> "Dataset":
    """Opens a dataset: the directory that ``attach``, ``run`` or ``import`` wrote.

    Raises Error if it is none, with what to do.
    """
    dataset = Dataset(path)
    run(["query", dataset.path, "SELECT 1", "--format", "csv"])
    return dataset


def diff(before: Union[Path, "Dataset"], after: Union[Path, "Dataset"]) -> Answer:
    """Compares two recordings of a job. ``code`` of the answer's JSON tells as the exit code does: see ``ebpfprof diff``."""
    return Answer(["diff", _path(before), _path(after)], accept=_COMPARED)


def _path(of: Union[Path, "Dataset"]) -> str:
    path = of.path if isinstance(of, Dataset) else os.fspath(of)
    # Nothing that is a path is taken for an option.
    return os.path.join(".", path) if path.startswith("-") else path


class Dataset:
    """A recording. Its answers are those of the commands; its tables are read by DuckDB in this process."""

    def __init__(self, path: Path):
        self.path = _path(path)

    def __repr__(self) -> str:
        return f"ebpfprof.open({self.path!r})"

    def report(self, **options: Any) -> Answer:
        """The verdict and what it stands on. Options are the command's: ``report(rank=0, step=17)``."""
        return self._answer("report", options, page=["--format", "html"])

    def findings(self, **options: Any) -> Answer:
        """What to change, and how much time that would save."""
        return self._answer("findings", options)

    def steps(self, **options: Any) -> Answer:
        """The steps: how many, how long, which were slow."""
        return self._answer("steps", options)

    def tree(self, **options: Any) -> Answer:
        """The call tree from Python lines to operators and kernels."""
        return self._answer("tree", options)

    def stacks(self, **options: Any) -> Answer:
        """The hottest stacks."""
        return self._answer("stacks", options)

    def memory(self, **options: Any) -> Answer:
        """Who holds memory."""
        return self._answer("memory", options)

    def diff(self, after: Union[Path, "Dataset"]) -> Answer:
        """This recording against a later one."""
        return diff(self, after)

    def sql(self, query: str) -> Any:
        """Runs SQL on the tables; a relation of DuckDB, with ``.df()``, ``.pl()``, ``.fetchall()``.

        The columns are those of ``ebpfprof schema``. Needs the package duckdb.
        """
        return self.connection.sql(query)

    @property
    def tables(self) -> List[str]:
        """The tables and views that have rows to offer."""
        return [name for (name,) in self.connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()]

    @functools.cached_property
    def connection(self) -> Any:
        """A connection of DuckDB with a view of each table; one for each Dataset."""
        try:
            import duckdb
        except ImportError as error:
            raise Error("sql() needs the package duckdb: pip install 'ebpfprof[sql]'", 127) from error
        if not os.path.isdir(self.path):
            raise Error(f"{self.path} is not a directory: give the path of a dataset", 2)
        connection = duckdb.connect()
        connection.execute("SET file_search_path = '" + os.path.abspath(self.path).replace("'", "''") + "'")
        # The views are the program's and not those of the dataset, which others may have written.
        for statement in duckdb.extract_statements(run(["schema", "--format", "sql"])):
            try:
                connection.execute(statement)
            except (duckdb.IOException, duckdb.CatalogException, duckdb.BinderException):
                pass  # a table without a file, or what is derived from it: the recording has no such rows
        return connection

    def _answer(self, command: str, options: dict, page: Any = None) -> Answer:
        return Answer([command, self.path, *_flags(options)], page=page)


def _flags(options: dict) -> List[str]:
    """``{"group_by": "operator", "all": True}`` as options of a command line."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
    return flags
