#!/bin/bash
# Runs every fuzz target for so long, one after the other: fuzz.sh 1m [PATTERN].
# What a target finds is written below its package's testdata/fuzz, to be fixed and
# committed.
set -eu -o pipefail
cd "$(dirname "$0")/.."
time=${1:-1m} pattern=${2:-.} failed=0 count=0
go=${GO:-go}

# On a busy machine go test may fail as the time is over, without an input that does:
# https://go.dev/issue/75804, until Go 1.27. That is no finding.
only_late() { grep -q '^ *context deadline exceeded$' <<<"$1" && ! grep -q 'Failing input written' <<<"$1"; }

module=$($go list -m)

for directory in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u); do
	# A package that does not compile ends this.
	mapfile -t targets < <($go test -list '^Fuzz' "./$directory" || echo "FuzzNothing: it does not compile")
	for target in "${targets[@]}"; do
		[[ $target =~ ^Fuzz ]] || continue
		[[ $directory/$target =~ $pattern ]] || continue
		count=$((count + 1))
		printf '%s %s ' "$directory" "$target"
		if said=$($go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$module/$directory" 2>&1) || only_late "$said"; then
			grep -o 'execs: [0-9]*' <<<"$said" | tail -1
		else
			failed=$((failed + 1))
			printf 'FAILED\n%s\n' "$said"
		fi
	done
done
echo "$count fuzz targets, $failed with a finding"
exit $((failed > 0))
