#!/bin/sh
# Builds versitygw, a server that speaks S3's protocol and keeps objects in a directory,
# from the Go proxy: what the tests of the fleet's buckets put into and read from.
#
#   versitygw.sh           build it if it is missing
#   versitygw.sh --check   exit status 0 if it is there, 1 if not
#   versitygw.sh --path    print where it is, or would be
#
# Its version is pinned, and checked as Go checks modules (go help module-auth).
set -eu

version=v1.8.0
bin=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/versitygw

case ${1-} in
--check)
	[ -x "$bin/$version/versitygw" ]
	exit
	;;
--path)
	echo "$bin/$version/versitygw"
	exit
	;;
'') ;;
*)
	echo "usage: versitygw.sh [--check | --path]" >&2
	exit 2
	;;
esac

mkdir -p "$bin"

# Two test runs may start at once; the second finds it done.
exec 9>"$bin.lock"
flock 9
if [ -x "$bin/$version/versitygw" ]; then
	exit 0
fi
new=$(mktemp -d "$bin/new-XXXXXX")
trap 'rm -rf "$new"' EXIT
GOFLAGS=-mod=mod GOBIN=$new go install "github.com/versity/versitygw/cmd/versitygw@$version"
mkdir -p "$bin/$version"
mv "$new/versitygw" "$bin/$version/versitygw"
rm -rf "$new"
