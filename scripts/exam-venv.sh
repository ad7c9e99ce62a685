#!/bin/sh
# Installs what the jobs of `make exam` import into a virtual environment of its own. PyTorch itself comes from the
# environment of torch-venv.sh, which is several gigabytes.
#
#   exam-venv.sh           install what is missing (about 1 GB on disk)
#   exam-venv.sh --check   exit status 0 if it is there, 1 if not
set -eu

torch=2.15.0
packages="torchvision==0.29.2 lightning==2.6.6 diffusers==0.42.1 transformers==5.24.0 scikit-learn==1.9.1
pillow==13.0.0 fastapi==0.165.0 uvicorn==0.54.0 httpx==0.28.1"
cache=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}
base=$cache/torch-venv
venv=$cache/exam-venv

# shellcheck disable=SC2086 # packages is a list
installed() {
	[ -x "$venv/bin/python" ] &&
		"$venv/bin/python" - "torch==$torch" $packages >/dev/null 2>&1 <<'PY'
import sys
from importlib.metadata import version
for pin in sys.argv[1:]:
    name, want = pin.split("==")
    if version(name).split("+")[0] != want:
        sys.exit(1)
PY
}

case ${1-} in
--check)
	installed
	exit
	;;
'') ;;
*)
	echo "usage: exam-venv.sh [--check]" >&2
	exit 2
	;;
esac

if installed; then
	exit 0
fi
"$(dirname "$0")/torch-venv.sh"
mkdir -p "$cache"

# Two test runs may start at once; the second finds it done.
exec 9>"$venv.lock"
flock 9
if installed; then
	exit 0
fi
echo "exam-venv.sh: installing torchvision, lightning, diffusers and others into $venv (several minutes)" >&2
if [ ! -x "$venv/bin/python" ]; then
	"$base/bin/python" -m venv "$venv"
	site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	"$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/torch-venv.pth"
fi
log=$venv/install.log
# shellcheck disable=SC2086 # a list of words
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "torch==$torch" $packages >"$log" 2>&1; then
	tail -n 5 "$log" >&2
	echo "exam-venv.sh: pip could not install the packages; the whole log is $log" >&2
	exit 1
fi
installed || {
	echo "exam-venv.sh: pip ended well, but a package is not in $venv" >&2
	exit 1
}
