#!/bin/bash
# Builds the program for manylinux_2_28: it runs with glibc 2.28 and later, whatever this machine has.
#
#   manylinux.sh x86_64|aarch64 OUTPUT [flags of go build…]
#
# zig comes from PyPI into the cache; Debian's cross compiler links for aarch64.
set -eu
ziglang=0.17.1
cache=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}

arch=$1 output=$2
shift 2
case $arch in
x86_64) goarch=amd64 triplet=x86_64-linux-gnu linker=gcc loader= ;;
aarch64) goarch=arm64 triplet=aarch64-linux-gnu linker=aarch64-linux-gnu-gcc loader= ;;
*)
	echo "usage: manylinux.sh x86_64|aarch64 OUTPUT [flags of go build…]" >&2
	exit 2
	;;
esac

mkdir -p "$cache"
exec 9>"$cache/ziglang.lock"
flock 9
if [ "$("$cache/ziglang-venv/bin/python" -m ziglang version 2>/dev/null)" != "$ziglang" ]; then
	rm -rf "$cache/ziglang-venv"
	/usr/bin/python3 -m venv "$cache/ziglang-venv"
	"$cache/ziglang-venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "ziglang==$ziglang" || {
		echo "manylinux.sh: pip could not fetch ziglang $ziglang, which compiles for old C libraries" >&2
		exit 1
	}
fi
if ! command -v "$linker" >/dev/null || [ ! -e "$("$linker" -print-file-name=libstdc++.a)" ]; then
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "g++-${triplet//_/-}" >/dev/null
fi

MANYLINUX_ZIG=$(echo "$cache"/ziglang-venv/lib/python3*/site-packages/ziglang/zig)
MANYLINUX_STUBS=$cache/manylinux-$ziglang-$arch
export MANYLINUX_ZIG MANYLINUX_STUBS MANYLINUX_ARCH=$arch MANYLINUX_LINKER=$linker MANYLINUX_LOADER=$loader
export ZIG_GLOBAL_CACHE_DIR=$MANYLINUX_STUBS/zig
here=$(cd "$(dirname "$0")" && pwd)

# zig writes the start file and the lists of symbols into its cache when it links for the first time.
if [ ! -e "$MANYLINUX_STUBS/complete" ]; then
	rm -rf "$MANYLINUX_STUBS"
	mkdir -p "$MANYLINUX_STUBS"
	echo 'int main(void) { return 0; }' >"$MANYLINUX_STUBS/empty.c"
	"$MANYLINUX_ZIG" cc -target "$arch-linux-gnu.2.28" "$MANYLINUX_STUBS/empty.c" -o "$MANYLINUX_STUBS/empty" -lm -lpthread -ldl
	for file in crt1.o libc_nonshared.a lib{c.so.6,m.so.6,dl.so.2,pthread.so.0,resolv.so.2,rt.so.1} $loader; do
		found=$(find "$ZIG_GLOBAL_CACHE_DIR/o" -name "$file" | head -n 1)
		[ -n "$found" ] || {
			echo "manylinux.sh: zig $ziglang made no $file" >&2
			exit 1
		}
		cp "$found" "$MANYLINUX_STUBS/"
	done
	touch "$MANYLINUX_STUBS/complete"
fi
"$here/manylinux-cc.sh" -O2 -c "$here/manylinux-shim.c" -o "$MANYLINUX_STUBS/shim.o"

CC=$here/manylinux-cc.sh CGO_ENABLED=1 GOARCH=$goarch CGO_CFLAGS="-O2 -g0" \
	go build -trimpath -o "$output" "$@" ./cmd/ebpfprof
# Everything that it asks of the C library is in 2.28; what a loader refuses is refused here.
newest=$(objdump -T "$output" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
[ "$(printf '%s\n' GLIBC_2.28 "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ] || {
	echo "manylinux.sh: $output needs $newest" >&2
	exit 1
}
echo "$output: $goarch, $newest"
