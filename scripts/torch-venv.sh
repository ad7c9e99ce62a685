#!/bin/sh
# Installs the current PyTorch from PyPI into a virtual environment of the tests.
#
#   torch-venv.sh           install what is missing (about 5 GB on disk)
#   torch-venv.sh --check   exit status 0 if it is there, 1 if not
#
# A source-built CPython is preferred: distributions' interpreters differ from it.
set -eu

torch=2.15.0
venv=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/torch-venv

installed() {
	[ -x "$venv/bin/python" ] &&
		"$venv/bin/python" - "$torch" >/dev/null 2>&1 <<'PY'
import sys
from importlib.metadata import version
version("numpy")
sys.exit(version("torch").split("+")[0] != sys.argv[1])
PY
}

# A source-built interpreter of a version that the pinned torch has wheels for;
# else the system's. Several versions of one minor: the first will do.
interpreter() {
	for python in \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python3 \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3 \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13.*/bin/python3 \
		/usr/local/bin/python3 \
		/usr/bin/python3; do
		if [ -x "$python" ] && "$python" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
			echo "$python"
			return
		fi
	done
	echo "torch-venv.sh: no python3 of 3.10 or later with the venv module; install python3-venv" >&2
	return 1
}

case ${1-} in
--check)
	installed
	exit
	;;
'') ;;
*)
	echo "usage: torch-venv.sh [--check]" >&2
	exit 2
	;;
esac

if installed; then
	exit 0
fi
python=$(interpreter)
echo "torch-venv.sh: installing torch $torch into $venv (a large download, several minutes)" >&2
mkdir -p "$(dirname "$venv")"

# Two test runs may start at once; the second finds it done.
exec 9>"$venv.lock"
flock 9
if installed; then
	exit 0
fi
if [ ! -x "$venv/bin/python" ]; then
	"$python" -m venv "$venv"
fi
log=$venv/install.log
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
	"torch==$torch" numpy >"$log" 2>&1; then
	if grep -q 'No matching distribution found for torch' "$log"; then
		echo "torch-venv.sh: torch $torch is not available for $("$venv/bin/python" --version) on $(uname -m)" >&2
	else
		tail -n 5 "$log" >&2
		echo "torch-venv.sh: pip could not install torch $torch; the whole log is $log" >&2
	fi
	exit 1
fi
installed || {
	echo "torch-venv.sh: pip ended well, but torch $torch is not in $venv" >&2
	exit 1
}
