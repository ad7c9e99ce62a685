#!/bin/sh
# Builds nfpm, which packs deb and rpm without the tools of either, from the Go proxy.
#
#   nfpm.sh           build it if it is missing
#   nfpm.sh --path    print where it is, or would be
#
# Its version is pinned, and checked as Go checks modules (go help module-auth).
set -eu

version=v2.45.0
bin=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/nfpm

case ${1-} in
--path)
	echo "$bin/$version/nfpm"
	exit
	;;
'') ;;
*)
	echo "usage: nfpm.sh [--path]" >&2
	exit 2
	;;
esac

mkdir -p "$bin"
exec 9>"$bin.lock"
flock 9
if [ -x "$bin/$version/nfpm" ]; then
	exit 0
fi
new=$(mktemp -d "$bin/new-XXXXXX")
trap 'rm -rf "$new"' EXIT
(cd / && CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN="$new" go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$version")
mkdir -p "$bin/$version"
mv "$new/nfpm" "$bin/$version/nfpm"
