#!/bin/sh
# Builds a CPython 3.11 for musl, Alpine's C library, from Debian's sources, for a test of
# tracer/python: nothing is installed.
#
#   musl-python.sh           build it into $EBPFPROF_CACHE, once (27 MB to fetch, 2 min)
#   musl-python.sh --check   exit status 0 if it is there, 1 if not
#
# Without it (no network, no musl-gcc, not amd64) that test leaves musl out.
set -eu

home=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/musl-python
python=$home/python3.11

runs() {
	[ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null
}

case ${1-} in
--check)
	runs
	exit
	;;
'') ;;
*)
	echo "usage: musl-python.sh [--check]" >&2
	exit 2
	;;
esac

mkdir -p "$(dirname "$home")"

# Two test runs may start at once; the second finds it done.
exec 9>"$home.lock"
flock 9
if runs; then
	exit 0
fi
if [ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ] || ! command -v musl-gcc >/dev/null; then
	echo "musl-python.sh: not Debian on amd64 with musl-tools: tests leave musl out" >&2
	exit 0
fi

rm -rf "$home"
mkdir -p "$home/lists/partial" "$home/archives/partial" "$home/source" "$home/build" "$home/kernel" "$home/bin" "$home/lib"
echo 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main' >"$home/sources.list"

# apt with lists of its own: the system's stay as they are.
private_apt() {
	apt-get -qq -o "Dir::Etc::sourcelist=$home/sources.list" -o Dir::Etc::sourceparts=- \
		-o "Dir::State::lists=$home/lists" -o "Dir::Cache=$home" -o "APT::Sandbox::User=$(id -un)" "$@"
}

if ! private_apt update || ! (cd "$home/archives" && private_apt --download-only source python3.11); then
	echo "musl-python.sh: Debian's sources cannot be reached: tests leave musl out" >&2
	rm -rf "$home"
	exit 0
fi
tar -C "$home/source" --strip-components 1 -xf "$home"/archives/python3.11_*.orig.tar.*

# musl-gcc is Debian's gcc: it says that its libraries are glibc's, and lacks the kernel's headers.
ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$home/kernel/"
cat >"$home/cc" <<CC
#!/bin/sh
[ "\$1" = --print-multiarch ] && exit 0
exec musl-gcc -idirafter '$home/kernel' "\$@"
CC
chmod +x "$home/cc"
(
	cd "$home/build"
	../source/configure -q "CC=$home/cc" --without-ensurepip --disable-test-modules 'CFLAGS=-O1 -g0' OPT=
	make -s -j 2 python
) >"$home/log" 2>&1 || {
	tail -n 5 "$home/log" >&2
	echo "musl-python.sh: CPython cannot be built with musl-gcc: tests leave musl out" >&2
	exit 0
}
mv "$home/build/python" "$home/bin/python3.11"
mv "$home/source/Lib" "$home/lib/python3.11"
mkdir "$home/lib/python3.11/lib-dynload"
rm -rf "$home/source" "$home/build" "$home/lists" "$home/archives" "$home"/*.bin "$home/lib/python3.11/test"
cat >"$python" <<WRAPPER
#!/bin/sh
PYTHONHOME='$home' exec '$home/bin/python3.11' "\$@"
WRAPPER
chmod +x "$python"
runs || {
	echo "musl-python.sh: it does not run here: tests leave musl out" >&2
	rm -rf "$home"
}
