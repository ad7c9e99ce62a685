#!/bin/sh
# Installs the Debian packages that building and testing need, only those missing.
#
#   system-packages.sh           install them
#   system-packages.sh --check   name what is missing; exit status 1 if anything is
set -eu

packages='
	binutils
	bpftool
	chromium
	clang-19
	fonts-dejavu-core
	g++
	gcc
	gdb
	libamdhip64-5
	libbpf-dev
	libelf-dev
	llvm-19
	libze-dev
	libze1
	linux-perf
	make
	musl-tools
	ocl-icd-opencl-dev
	pocl-opencl-icd
	pypy3
	python3
	python3-dbg
	python3-dev
	python3-numpy
	python3-pyopencl
	python3-torch
	python3-venv
	shellcheck
	util-linux
'

missing=
for package in $packages; do
	status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
	if [ "$status" != 'install ok installed' ]; then
		missing="$missing $package"
	fi
done

case ${1-} in
--check)
	if [ -n "$missing" ]; then
		echo "missing:$missing"
		exit 1
	fi
	exit 0
	;;
'') ;;
*)
	echo "usage: system-packages.sh [--check]" >&2
	exit 2
	;;
esac

if [ -z "$missing" ]; then
	exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
	as_root=
elif command -v sudo >/dev/null; then
	as_root=sudo
else
	echo "system-packages.sh: neither root nor sudo; as root: apt-get install$missing" >&2
	exit 1
fi

echo "system-packages.sh: installing$missing" >&2
install() {
	# shellcheck disable=SC2086 # both are lists of words
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# The lists may be absent, or name versions that are gone: then fetch them, once.
# shellcheck disable=SC2086 # a list of words
if ! apt-cache show $missing >/dev/null 2>&1 || ! install 2>/dev/null; then
	$as_root apt-get update -qq
	install
fi
