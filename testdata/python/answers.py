"""What the wheel's Python package does, asserted in an environment where nothing but the wheel is installed.

    answers.py DIRECTORY

Records itself twice, so it needs the rights of `ebpfprof attach`; prints "ok" and what it left out.
"""

import json
import os
import subprocess
import sys
import time

import ebpfprof

scratch = sys.argv[1]


def work(seconds: float) -> int:
    """Uses so much CPU time, whatever else the machine does."""
    count, end = 0, time.thread_time() + seconds
    while time.thread_time() < end:
        count += sum(range(1000))
    return count


def fails(call, code: int, *words: str) -> None:
    try:
        call()
    except ebpfprof.Error as error:
        assert error.code == code, (error.code, str(error))
        for word in words:
            assert word in str(error), (word, str(error))
        assert "Traceback" not in str(error) and not str(error).startswith("ebpfprof:"), str(error)
    else:
        raise AssertionError("no error")


def cli(*arguments: str) -> str:
    return subprocess.run([ebpfprof.binary(), *arguments], stdout=subprocess.PIPE, check=True).stdout.decode()


# The program is the one of this environment, and python -m runs it.
assert os.path.dirname(ebpfprof.binary()) == os.path.dirname(sys.executable), ebpfprof.binary()
assert ebpfprof.version() == cli("--version").split()[-1]
assert subprocess.run([sys.executable, "-m", "ebpfprof", "--version"], stdout=subprocess.PIPE).stdout.decode() == cli("--version")

recordings = []
for name in ("before", "after"):
    with ebpfprof.record(output=os.path.join(scratch, name)) as recording:
        assert recording.dataset is None
        work(2)
    assert recording.dataset is not None
    recordings.append(recording.dataset)
before, after = recordings

# Each answer is the command's.
ds = ebpfprof.open(before.path)
report = ds.report()
assert report.text == cli("report", before.path), report.text
assert report.json == json.loads(cli("report", before.path, "--json"))
assert "work" in report.text, report.text
page = report._repr_html_()
assert page.startswith("<iframe sandbox srcdoc=") and "<script>alert" not in page
for answer in (ds.findings(), ds.steps(), ds.tree(), ds.stacks()):
    assert answer.json == json.loads(cli(*answer.command[1:], "--json")), answer.command
    assert answer._repr_html_().startswith("<pre>")
assert ds.stacks(top=3).command[-1] == "--top=3"

compared = ds.diff(after)
assert compared.text
assert compared.json["verdict"] == ebpfprof.diff(before, after).json["verdict"]

# A path is no option, and errors are sentences.
fails(lambda: ebpfprof.open("--help"), 1, "--help")
fails(lambda: ebpfprof.open(os.path.join(scratch, "nowhere")), 1, "nowhere")
fails(lambda: ds.report(no_such_option=1).text, 2, "no-such-option")


def record_nobody() -> None:
    with ebpfprof.record(pid=2**22 - 1, output=os.path.join(scratch, "nobody")):
        raise AssertionError("the block runs although there is no such process")


fails(record_nobody, 1, "4194303")
os.environ["EBPFPROF"] = os.path.join(scratch, "no-program")
fails(lambda: ds.report().text, 126, "no-program")
del os.environ["EBPFPROF"]

# An exception in the block ends the recording, and is the one that is seen.
try:
    with ebpfprof.record(output=os.path.join(scratch, "raised")) as raised:
        work(0.5)
        raise KeyError("mine")
except KeyError:
    pass
assert raised.dataset is not None and ebpfprof.open(raised.dataset.path).report().text

try:
    import duckdb  # noqa: F401
except ImportError:
    fails(lambda: ds.sql("SELECT 1"), 127, "pip install")
    print("ok without duckdb")
    sys.exit()

# Tables: the columns of the schema, and what the program counts.
counted = json.loads(cli("query", before.path, "SELECT count(*) AS n FROM sample", "--format", "json"))
assert ds.sql("SELECT count(*) FROM sample").fetchone()[0] == counted[0]["n"] > 0
assert {"sample", "session", "stack"} <= set(ds.tables), ds.tables
assert ds.sql("SELECT ts FROM sample LIMIT 1").fetchone()[0] is not None
print("ok with duckdb", duckdb.__version__)
