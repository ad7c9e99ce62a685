#!/bin/sh
# Puts Debian sid's CPython 3.14 beside the system, with a C library of its own,
# for the tests of symbolize/cpython and tracer/python: nothing is installed.
#
#   python-3.14.sh           fetch it (about 20 MB) into $EBPFPROF_CACHE, once
#   python-3.14.sh --check   exit status 0 if it is there, 1 if not
#
# Without it (no network, not amd64) those tests leave 3.14 out.
set -eu

home=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/python-3.14
python=$home/python3.14

runs() {
	[ -x "$python" ] && "$python" -c 'import ctypes, sys; sys.exit(sys.version_info[:2] != (3, 14))' 2>/dev/null
}

case ${1-} in
--check)
	runs
	exit
	;;
'') ;;
*)
	echo "usage: python-3.14.sh [--check]" >&2
	exit 2
	;;
esac

if runs; then
	exit 0
fi
if [ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]; then
	echo "python-3.14.sh: not Debian on amd64: tests leave 3.14 out" >&2
	exit 0
fi

rm -rf "$home"
mkdir -p "$home/lists/partial" "$home/archives/partial" "$home/debs" "$home/root"
echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main' >"$home/sources.list"

# apt with lists of its own: the system's stay as they are.
private_apt() {
	apt-get -qq -o "Dir::Etc::sourcelist=$home/sources.list" -o Dir::Etc::sourceparts=- \
		-o "Dir::State::lists=$home/lists" -o "Dir::Cache=$home" -o "APT::Sandbox::User=$(id -un)" "$@"
}

echo "python-3.14.sh: fetching CPython 3.14 from Debian sid" >&2
if ! private_apt update || ! (cd "$home/debs" && private_apt download \
	python3.14 python3.14-minimal libpython3.14-minimal libpython3.14-stdlib libpython3.14-dev \
	libc6 libexpat1 zlib1g libffi8 libssl3t64 libbz2-1.0 liblzma5 libzstd1 libgcc-s1 libuuid1); then
	echo "python-3.14.sh: sid cannot be reached: tests leave 3.14 out" >&2
	exit 0
fi
for package in "$home"/debs/*.deb; do
	dpkg-deb -x "$package" "$home/root"
done
rm -rf "$home/debs" "$home/lists" "$home/archives" "$home"/*.bin

usr=$home/root/usr
cat >"$python" <<WRAPPER
#!/bin/sh
PYTHONHOME='$usr' exec '$usr/lib64/ld-linux-x86-64.so.2' --library-path '$usr/lib/x86_64-linux-gnu' '$usr/bin/python3.14' "\$@"
WRAPPER
chmod +x "$python"
if ! runs; then
	echo "python-3.14.sh: it does not run here: tests leave 3.14 out" >&2
	rm -rf "$home"
fi
