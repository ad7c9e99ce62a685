#!/usr/bin/env bash
# gpu.sh OUT: all checks on a machine with an NVIDIA GPU, in one run of some five minutes: doctor, gpucheck, a
# transformer's training step with and without a recording in turn, the job's own profiler beside a recording, CUPTI's
# rows of devices and their price, counters, NCCL of one rank. OUT/log.txt has the whole output; each step has a limit
# of its own. Needs root, bin/ebpfprof, bin/gpucheck and a python3 with PyTorch; no network. docs/gpu-check.json has the results of the last.
set -u
out=$(realpath -m "${1:?usage: gpu.sh OUT}") root=$(realpath "$(dirname "$0")/..") p=
mkdir -p "$out" && work=$(mktemp -d) && cd "$work" || exit
exec > >(tee "$out/log.txt") 2>&1
e=$root/bin/ebpfprof jobs=$root/internal/dev/gpucheck/jobs
trap 'kill $p 2>/dev/null; rm -rf "$work"' EXIT
say() { echo "=== $SECONDS s: $*"; }
q() { echo "-- $1: $2" && timeout 20 "$e" query "$1" "$2"; }
window() { echo "$1 $(date +%s%N)" >>windows.txt; }

say machine
uname -a && nvidia-smi && python3 -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.nccl.version())'
say doctor and a plain Python
timeout 40 "$e" doctor
python3 -c 'while True: sum(range(1000))' & p=$!
sleep 1 && timeout 40 "$e" attach --pid $p --duration 3s -o plain && kill $p
say gpucheck
timeout 170 "$root/bin/gpucheck" --output "$out/gpu-check.json" --python python3
say a transformer
KINETO_USE_DAEMON=1 python3 "$jobs/transformer.py" 200 steps.txt & p=$!
while kill -0 $p && [ ! -s steps.txt ]; do sleep 1; done
timeout 60 "$e" attach --pid $p --duration 10s -o first --no-verdict -q
for i in 1 2 3; do
  for level in window anchor; do
    window off && sleep 5 && window $level
    timeout 60 "$e" attach --pid $p --duration 5s --level $level -o "$level$i" --no-verdict -q >/dev/null
    window end && sleep 1
  done
done
timeout 60 "$e" attach --pid $p --duration 15s -o defaults
nvidia-smi --query-gpu=utilization.gpu,clocks.sm,power.draw,memory.used,temperature.gpu --format=csv
say the profiler of the job
timeout 70 "$e" attach --pid $p --duration 5s --budget off --device-times profiler -o exact --no-verdict
kill $p
timeout 30 "$e" report defaults && timeout 30 "$e" findings defaults
q defaults "SELECT name_source, count(*) AS n FROM span WHERE layer = 'runtime' AND category = 'launch' GROUP BY ALL"
q defaults "SELECT name, count(*) AS n, min(value) AS lo, max(value) AS hi FROM counter WHERE source = 'nvidia' GROUP BY ALL ORDER BY name"
q exact "SELECT * EXCLUDE (session_id) FROM merged_trace" && timeout 30 "$e" report exact
python3 - <<'P'
import statistics
steps = [tuple(map(int, line.split())) for line in open("steps.txt") if line.count(" ") == 1]
windows = [line.split() for line in open("windows.txt")]
for (kind, begin), (_, end) in zip(windows, windows[1:]):
    ms = [(b - a) / 1e6 for a, b in steps if a >= int(begin) and b <= int(end)]
    if kind != "end" and ms:
        print(f"{kind:8} {len(ms)} steps, mean {statistics.mean(ms):.3f} ms, median {statistics.median(ms):.3f} ms")
P
say CUPTI
lib=$root/internal/record/injection/built/libebpfprof-cupti.so
python3 "$jobs/transformer.py" 4 plain.txt
timeout 45 "$e" run -o cupti --no-verdict --device-times cupti -- python3 "$jobs/transformer.py" 5 cupti.txt
CUDA_INJECTION64_PATH=$lib timeout 30 python3 "$jobs/transformer.py" 4 library.txt
timeout 45 "$e" run -o bounds --no-verdict -q -- python3 "$jobs/transformer.py" 4 bounds.txt
timeout 45 python3 "$jobs/kernels.py" 15 5 profile
timeout 45 "$e" run -o counted --no-verdict --budget off --device-times cupti -- python3 "$jobs/kernels.py" 15 5
q cupti "SELECT * EXCLUDE (session_id) FROM merged_trace"
q counted "SELECT * EXCLUDE (session_id) FROM merged_trace"
q counted "SELECT category, count(*) AS n, round(sum(duration_ns) / 1e3, 1) AS us FROM span WHERE layer = 'device'
  AND ts_ns BETWEEN $(cat window.txt) GROUP BY ALL"
timeout 30 "$e" report counted
python3 - <<'P'
import statistics
for label in ("plain", "library", "bounds", "cupti"):
    ms = [(b - a) / 1e6 for a, b in (map(int, line.split()) for line in open(label + ".txt") if line.count(" ") == 1)][20:]
    print(f"{label:8} {len(ms)} steps, mean {statistics.mean(ms):.3f} ms, median {statistics.median(ms):.3f} ms")
P
say NCCL of one rank
NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL NCCL_DEBUG_FILE=$out/nccl.log python3 "$jobs/onerank.py" 14 & p=$!
sleep 6 && timeout 60 "$e" attach --pid $p --budget off -o nccl --no-verdict -q --duration 25s
q nccl "SELECT name, category, bytes, count(*) AS n FROM span WHERE name LIKE 'nccl%' GROUP BY ALL ORDER BY n DESC"
grep -oE "(AllReduce|Broadcast|AllGather|ReduceScatter): opCount" "$out/nccl.log" | sort | uniq -c
for d in defaults exact nccl cupti counted; do tar czf "$out/$d.tgz" $d; done
say end
