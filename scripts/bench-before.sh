#!/bin/bash
# The benchmarks of another commit and of this tree in turn, on the same machine in
# the same hour: bench-before.sh COMMIT [PARTS [ROUNDS]]. Each has its own bench, with
# the tracer built into it. Run it on a quiet machine.
set -eu -o pipefail
cd "$(dirname "$0")/.."
before=${1:?give the commit to compare with} parts=${2:-hit,launch,attach,samples} rounds=${3:-2}
go=${GO:-go}
there=$(mktemp -d)
trap 'git worktree remove --force "$there/tree" 2>/dev/null || true; rm -rf "$there"' EXIT

git worktree add --quiet --detach "$there/tree" "$before"
for tree in "$there/tree" "$PWD"; do
	make -s -C "$tree" build native
done
(cd "$there/tree" && $go build -o bin/bench ./internal/dev/bench)
$go build -o bin/bench ./internal/dev/bench

for round in $(seq "$rounds"); do
	for tree in "$there/tree" "$PWD"; do
		printf '\n== round %s: %s\n' "$round" "$(git -C "$tree" log -1 --format='%h %s')"
		(cd "$tree" && bin/bench -quick -only "$parts")
	done
done
