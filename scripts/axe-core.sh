#!/bin/sh
# Fetches axe-core, which checks the page's accessibility in its tests, into the cache. It is no part of the product.
set -eu

version=4.14.1
to=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/axe-core-$version

if [ -f "$to/axe.min.js" ]; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo "axe-core.sh: npm is not installed: the page's tests go without axe-core" >&2
	exit 0
fi
mkdir -p "$(dirname "$to")"
part=$(mktemp -d "$to.XXXXXX")
trap 'rm -rf "$part"' EXIT
if ! (cd "$part" && npm pack --silent --ignore-scripts "axe-core@$version" >/dev/null); then
	echo "axe-core.sh: npm could not fetch axe-core $version: the page's tests go without it" >&2
	exit 0
fi
tar -xzf "$part/axe-core-$version.tgz" -C "$part" --strip-components=1 package/axe.min.js package/LICENSE
rm "$part/axe-core-$version.tgz"
mv "$part" "$to" 2>/dev/null || [ -f "$to/axe.min.js" ]
