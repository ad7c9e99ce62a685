#!/bin/sh
# Builds promtool, which evaluates Prometheus's rules with Prometheus's own engine, from
# the Go proxy: what the tests of deploy/alerts.yaml ask.
#
#   promtool.sh           build it if it is missing
#   promtool.sh --check   exit status 0 if it is there, 1 if not
#
# Its version is pinned, and checked as Go checks modules (go help module-auth).
set -eu

version=v0.313.5
bin=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/promtool

case ${1-} in
--check)
	[ -x "$bin/$version/promtool" ]
	exit
	;;
'') ;;
*)
	echo "usage: promtool.sh [--check]" >&2
	exit 2
	;;
esac

mkdir -p "$bin"

# Two test runs may start at once; the second finds it done.
exec 9>"$bin.lock"
flock 9
if [ -x "$bin/$version/promtool" ]; then
	exit 0
fi
new=$(mktemp -d "$bin/new-XXXXXX")
trap 'rm -rf "$new"' EXIT
# `go install` refuses it for the replace directives of its go.mod: it is built from a copy,
# without the clients of the clouds that promtool knows, which no rule needs.
from=$(cd / && go mod download -json "github.com/prometheus/prometheus@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
[ -d "$from" ]
cp -r "$from" "$new/source"
chmod -R u+w "$new/source"
(cd "$new/source" && GOWORK=off GOFLAGS=-mod=mod go build -tags remove_all_sd -o "$new/promtool" ./cmd/promtool)
mkdir -p "$bin/$version"
mv "$new/promtool" "$bin/$version/promtool"
rm -rf "$new"
