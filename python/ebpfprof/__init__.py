"""ebpfprof in Python: recordings, their answers and their tables.

    import ebpfprof

    ds = ebpfprof.open("demo-dataset")
    ds.report()                        # the verdict first; HTML in a notebook, text elsewhere
    ds.findings().json                 # what `ebpfprof findings --json` prints
    ds.sql("SELECT name, count(*) AS calls FROM span GROUP BY ALL").df()
    ebpfprof.diff("before", "after")

    with ebpfprof.record() as recording:   # this process; needs the rights of `ebpfprof attach`
        train()
    recording.dataset.report()

Every answer is the command's own: this package runs the ``ebpfprof`` program and reads
what it prints, and computes nothing itself. In a notebook ``%load_ext ebpfprof`` brings
``%%ebpfprof``, which records while a cell runs and shows the report.
"""

from ._answer import Answer
from ._binary import Error, binary, version
from ._dataset import Dataset, diff, open
from ._recording import Recording, record

__all__ = ["Answer", "Dataset", "Error", "Recording", "binary", "diff", "open", "record", "version"]


def load_ipython_extension(shell) -> None:
    """Registers ``%%ebpfprof``; IPython calls it for ``%load_ext ebpfprof``."""
    from ._notebook import register

    register(shell)
