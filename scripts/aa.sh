#!/bin/bash
# Pairs that must not differ: aa.sh [ROUNDS [JOB…]]. Of each running job three recordings are made, of 8, 8 and 16 s, and
# the second and the third are compared with the first: 10 (a regression) is a false alarm, and fails. A job is a
# program of testdata/jobs with its arguments. Needs root and a Python with PyTorch (PY); B is the tracer.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-2}
shift $(($# > 0))
jobs=("$@")
[ ${#jobs[@]} -gt 0 ] || jobs=("mlp.py --seconds 120" "transformer.py --seconds 120" "resnet.py --seconds 120"
	"planted.py --problem none --steps 1000000" "loops.py --loop accumulate --epochs 100000" "inference.py decode --requests 1000000")
tracer=$(realpath "${B:-bin/ebpfprof}") python=${PY:-python3}
dir=$(mktemp -d)
job=
trap '[ -z "$job" ] || kill "$job" 2>/dev/null || true; rm -rf "$dir"' EXIT
declare -A codes=()
pairs=0

record() { # SECONDS NAME: records the running job
	"$tracer" attach --pid "$job" --duration "${1}s" --no-verdict --output "$dir/$2" >"$dir/attach.log" 2>&1 ||
		{ cat "$dir/attach.log" >&2; exit 1; }
}

compare() { # NAME: compares it with the first recording
	local code=0
	"$tracer" diff "$dir/first" "$dir/$1" >"$dir/diff.log" 2>&1 || code=$?
	pairs=$((pairs + 1)) codes[$code]=$((${codes[$code]:-0} + 1))
	printf '%-46s 8 s and %-6s exit %-3s %s\n' "$of" "$1" "$code" "$(sed -n 1p "$dir/diff.log" | cut -c1-110)"
}

for ((round = 0; round < rounds; round++)); do
	for of in "${jobs[@]}"; do
		read -ra words <<<"$of"
		"$python" "testdata/jobs/${words[0]}" "${words[@]:1}" >"$dir/job.log" 2>&1 &
		job=$!
		until grep -q ready "$dir/job.log"; do
			kill -0 "$job" 2>/dev/null || { echo "$of ended before it was ready" >&2; tail -3 "$dir/job.log" >&2; exit 1; }
			sleep 0.2
		done
		record 8 first
		record 8 8s
		record 16 16s
		kill "$job"
		wait "$job" 2>/dev/null || true
		job=
		compare 8s
		compare 16s
		rm -rf "$dir/first" "$dir/8s" "$dir/16s"
	done
done
echo "$pairs pairs:$(for code in $(printf '%s\n' "${!codes[@]}" | sort -n); do printf ' exit %s: %s;' "$code" "${codes[$code]}"; done)"
[ -z "${codes[10]:-}" ]
