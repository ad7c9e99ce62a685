#!/bin/sh
# The demo of the README: traces a small training loop that is already running
# and asks three questions of what was recorded. `make demo` builds, then calls
# it.
#
#   EBPFPROF_PYTHON=/path/to/python3   a Python that can import torch (else python3, else Debian's)
#   EBPFPROF_DEMO_JOB=mlp.py           another job of testdata/jobs
#
# The dataset stays behind in demo-dataset; the next demo replaces it.
set -eu
cd "$(dirname "$0")/.."

job=${EBPFPROF_DEMO_JOB:-transformer.py}
dataset=demo-dataset
marker=$dataset/.demo
seconds=5

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
if [ ! -t 1 ] || [ -n "${NO_COLOR-}" ]; then
	say() { printf '\n%s\n' "$*"; }
fi
has_torch() { "$1" -c 'import torch' >/dev/null 2>&1; }

# A torch that is there already, else Debian's.
python=
for candidate in ${EBPFPROF_PYTHON:-} python3 /usr/bin/python3; do
	if has_torch "$candidate"; then
		python=$candidate
		break
	fi
done
if [ -z "$python" ]; then
	say "No Python here can import torch: installing Debian's python3-torch"
	scripts/system-packages.sh
	python=/usr/bin/python3
	if ! has_torch "$python"; then
		echo "demo.sh: $python cannot import torch; name one that can in EBPFPROF_PYTHON" >&2
		exit 1
	fi
fi

# Only a dataset of an earlier demo is removed.
if [ -e "$dataset" ] && [ ! -e "$marker" ]; then
	echo "demo.sh: $dataset is there and not from a demo: move it away" >&2
	exit 1
fi
rm -rf "$dataset"

log=$(mktemp)
pid=
# shellcheck disable=SC2317 # the trap calls it
stop() {
	if [ -n "$pid" ]; then
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	fi
	rm -f "$log"
	if [ -d "$dataset" ]; then
		: >"$marker"
	fi
}
trap stop EXIT
trap 'exit 130' INT TERM

say "1. A training loop is running: $python testdata/jobs/$job"
"$python" "testdata/jobs/$job" --seconds 600 >"$log" 2>&1 &
pid=$!
waited=0
until grep -q '^ready' "$log"; do
	if ! kill -0 "$pid" 2>/dev/null || [ "$waited" -ge 1200 ]; then
		cat "$log" >&2
		echo "demo.sh: the job did not start" >&2
		exit 1
	fi
	sleep 0.1
	waited=$((waited + 1))
done
echo "   $("$python" -c 'import sys, torch; print("Python", sys.version.split()[0] + ", PyTorch", torch.__version__)'), pid $pid, warm; it knows nothing of a tracer"

# Below root, sudo does what needs privileges.
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
ask() {
	say "$1"
	printf '   $ ebpfprof query %s --example %s\n' "$dataset" "$2"
	bin/ebpfprof query "$dataset" --example "$2" | head -n 14
}

say "2. Recorded for $seconds s from outside"
printf '   $ ebpfprof attach --pid %s --duration %ss --output %s\n' "$pid" "$seconds" "$dataset"
$as_root bin/ebpfprof attach --pid "$pid" --duration "${seconds}s" --output "$dataset"

ask "3. Which operators take the time, with and without what they call?" operators
ask "4. Which forward operator made which backward node?" backward
ask "5. Who allocates?" allocations

say "The dataset is in $dataset: Parquet files, one directory a table. More questions:"
bin/ebpfprof query --list-examples | sed 's/^/   /'
