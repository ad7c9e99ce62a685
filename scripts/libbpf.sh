#!/bin/sh
# Builds upstream's libbpf, which loads and attaches the BPF objects a second time in the
# tests (build tag libbpf): nothing of it is in the program that is shipped.
#
#   libbpf.sh           fetch and build it if it is missing (4 MB, under 1 min)
#   libbpf.sh --check   exit status 0 if it is there, 1 if not
#   libbpf.sh --env     print what to set for go build and go test
#
# Debian 12's libbpf is too old for uprobe.multi. The sources are those in the crate
# libbpf-sys, whose sum is pinned; cargo fetches it.
set -eu

version=1.7.0
crate=a109478760b2900aa2a6f2087e9d0de1d9c535b1758602af2845d5d2ccfaed7c
home=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/libbpf
built=$home/$version

case ${1-} in
--check)
	[ -f "$built/libbpf.a" ]
	exit
	;;
--env)
	echo "CGO_ENABLED=1 CGO_CFLAGS=-I$built/include CGO_LDFLAGS=$built/libbpf.a"
	exit
	;;
'') ;;
*)
	echo "usage: libbpf.sh [--check | --env]" >&2
	exit 2
	;;
esac

mkdir -p "$home"

# Two test runs may start at once; the second finds it done.
exec 9>"$home.lock"
flock 9
if [ -f "$built/libbpf.a" ]; then
	exit 0
fi
for tool in cargo cc make; do
	command -v "$tool" >/dev/null || {
		echo "libbpf.sh: there is no $tool: the tests that load with libbpf are skipped" >&2
		exit 1
	}
done
new=$(mktemp -d "$home/new-XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir "$new/fetch" "$new/fetch/src"
echo >"$new/fetch/src/lib.rs"
cat >"$new/fetch/Cargo.toml" <<TOML
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[dependencies]
libbpf-sys = { version = "=$version", default-features = false }
TOML
(cd "$new/fetch" && cargo --quiet vendor "$new/crates" >/dev/null)
grep -q "\"package\":\"$crate\"" "$new/crates/libbpf-sys/.cargo-checksum.json" || {
	echo "libbpf.sh: the crate libbpf-sys $version has another sum than it had" >&2
	exit 1
}
sources=$new/crates/libbpf-sys/libbpf/src
mkdir "$new/objects" "$new/out"
make -s -j 2 -C "$sources" BUILD_STATIC_ONLY=1 NO_PKG_CONFIG=1 OBJDIR="$new/objects" DESTDIR="$new/out" PREFIX= \
	"$new/objects/libbpf.a" install_headers >"$new/log" 2>&1 || {
	tail -n 5 "$new/log" >&2
	exit 1
}
rm -rf "$built"
mkdir "$built"
cp -r "$sources/../include/uapi" "$built/include"
cp -r "$new/out/include/bpf" "$built/include/"
cp "$new/objects/libbpf.a" "$built/libbpf.a"
