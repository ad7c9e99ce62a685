#!/bin/sh
# Fetches runtime libraries of accelerators that Debian 12 has not, from later
# releases of Debian, for the tests that look for the catalog's functions in them.
#
#   runtime-libraries.sh           fetch what is missing (140 MB, 340 MB on disk)
#   runtime-libraries.sh --check   name what is missing; exit status 1 if anything is
#
# Nothing is installed: the packages are downloaded by apt with lists of its own
# and unpacked, a folder for each list in testdata/symbols, beside a file with the
# package's version. Unstable moves on: a package that is no longer there in the
# version of the list is named, and its test is skipped.
set -eu

# list, package, version, the library within it
libraries='
libcuda-550 libcuda1 550.163.01-2 nvidia/current/libcuda.so.550.163.01
libamdhip64-6.4 libamdhip64-6 6.4.3-5 libamdhip64.so.6.4.43484
librccl-5.4 librccl1 5.4.3-3+b1 librccl.so.1.0
libze_loader-1.32 libze1 1.32.0-1 libze_loader.so.1.32.0
'
releases='trixie sid'
cache=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/runtimes

missing() {
	echo "$libraries" | while read -r list package version library; do
		[ -n "$list" ] || continue
		[ "$(cat "$cache/$list/version" 2>/dev/null)" = "$version" ] && [ -s "$cache/$list/${library##*/}" ] ||
			echo "$list $package $version $library"
	done
}

case ${1-} in
--check)
	if [ -n "$(missing)" ]; then
		echo "missing: $(missing | cut -d' ' -f1 | paste -sd' ' -)"
		exit 1
	fi
	exit 0
	;;
'') ;;
*)
	echo "usage: runtime-libraries.sh [--check]" >&2
	exit 2
	;;
esac

if [ -z "$(missing)" ]; then
	exit 0
fi
if [ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]; then
	echo "runtime-libraries.sh: the lists are of amd64; nothing fetched" >&2
	exit 0
fi

mkdir -p "$cache"
# Two test runs may start at once; the second finds it done.
exec 9>"$cache.lock"
flock 9
wanted=$(missing)
[ -n "$wanted" ] || exit 0

work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
: >"$work/status"

# The machine's own mirror, with other releases.
mirror() { apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 'Label: Debian' | head -n 1; }
uri=$(mirror)
if [ -z "$uri" ]; then
	apt-get update -qq
	uri=$(mirror)
fi
if [ -z "$uri" ]; then
	echo "runtime-libraries.sh: apt knows no mirror of Debian" >&2
	exit 1
fi
for release in $releases; do
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $release main non-free"
done >"$work/sources.list"

own() {
	command=$1
	shift
	"$command" -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$work/lists" -o Dir::State::Status="$work/status" -o Dir::Cache="$work/cache" \
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

echo "runtime-libraries.sh: fetching $(echo "$wanted" | cut -d' ' -f1 | paste -sd' ' -) into $cache" >&2
if ! own apt-get update >"$work/log" 2>&1; then
	tail -n 5 "$work/log" >&2
	echo "runtime-libraries.sh: apt could not fetch the lists of $releases" >&2
	exit 1
fi
cd "$work"
echo "$wanted" | while read -r list package version library; do
	if ! own apt-cache show "$package=$version" >/dev/null 2>&1; then
		echo "runtime-libraries.sh: $package $version is no longer in $releases; the list $list is compared with nothing" >&2
		continue
	fi
	own apt-get download "$package=$version" >"$work/log" 2>&1 9>&- || {
		tail -n 5 "$work/log" >&2
		echo "runtime-libraries.sh: apt could not fetch $package $version" >&2
		exit 1
	}
	dpkg-deb -x "$package"_*.deb "$work/$list"
	mkdir -p "$cache/$list"
	mv "$work/$list/usr/lib/x86_64-linux-gnu/$library" "$cache/$list/"
	echo "$version" >"$cache/$list/version"
done
