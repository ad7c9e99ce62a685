#!/bin/sh
# Installs py-spy, which the tests and the benchmark compare samples with, from
# PyPI into an environment of its own.
#
#   py-spy.sh           install it if it is missing (3 MB to fetch)
#   py-spy.sh --check   exit status 0 if it is there, 1 if not
#
# The wheel holds one program and no Python code: any interpreter can be sampled
# by it. Its hashes are pinned, of the wheels for x86-64 and for arm64.
set -eu

pyspy=0.4.3
amd64=8a4277225f470d394a85cca0cdd944bef87f0097b6f20150a6dd3ac2e92806b8
arm64=bbcec46930d464b3bfc142d6d02ade4dd8ad5627823263b3eff0280e80c7c132
venv=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/py-spy-venv

installed() {
	[ "$("$venv/bin/py-spy" --version 2>/dev/null)" = "py-spy $pyspy" ]
}

case ${1-} in
--check)
	installed
	exit
	;;
'') ;;
*)
	echo "usage: py-spy.sh [--check]" >&2
	exit 2
	;;
esac

if installed; then
	exit 0
fi
mkdir -p "$(dirname "$venv")"

# Two test runs may start at once; the second finds it done.
exec 9>"$venv.lock"
flock 9
if installed; then
	exit 0
fi
rm -rf "$venv"
/usr/bin/python3 -m venv "$venv"
requirements=$venv/requirements.txt
echo "py-spy==$pyspy --hash=sha256:$amd64 --hash=sha256:$arm64" >"$requirements"
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	--require-hashes --requirement "$requirements" >"$venv/install.log" 2>&1; then
	tail -n 5 "$venv/install.log" >&2
	echo "py-spy.sh: pip could not fetch py-spy $pyspy for $(uname -m)" >&2
	exit 1
fi
installed || {
	echo "py-spy.sh: pip ended well, but py-spy $pyspy is not in $venv" >&2
	exit 1
}
