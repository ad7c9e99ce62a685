#!/bin/sh
# Installs JAX and two plugins of PJRT from PyPI, for the tests.
#
#   jax.sh            install what is missing (350 MB to fetch, 1.4 GB on disk)
#   jax.sh --check    exit status 0 if it is there, 1 if not
#
# jax-venv is a virtual environment with JAX on the CPU. pjrt/xla_cuda_plugin.so
# is the CUDA plugin alone: it loads without a device, and is not installed into
# the environment, where JAX would try to use it. pjrt/xla_cpu_plugin.so is XLA's
# CPU client as a plugin (built for LAMMPS), which real JAX runs on.
set -eu

jax=0.12.0.1
cpu=0.11.2
cache=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}
venv=$cache/jax-venv
plugin=$cache/pjrt/xla_cuda_plugin.so
cpu_plugin=$cache/pjrt/xla_cpu_plugin.so
version=$cache/pjrt/version

installed() {
	[ -f "$plugin" ] && [ -f "$cpu_plugin" ] && [ "$(cat "$version" 2>/dev/null)" = "$jax $cpu" ] && [ -x "$venv/bin/python" ] &&
		"$venv/bin/python" - "$jax" >/dev/null 2>&1 <<'PY'
import sys
from importlib.metadata import version
version("numpy")
sys.exit(version("jaxlib") != sys.argv[1])
PY
}

interpreter() {
	for python in \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3 \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13.*/bin/python3 \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python3 \
		/usr/local/bin/python3 \
		/usr/bin/python3; do
		if [ -x "$python" ] && "$python" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
			echo "$python"
			return
		fi
	done
	echo "jax.sh: no python3 of 3.11 or later with the venv module; install python3-venv" >&2
	return 1
}

case ${1-} in
--check)
	installed
	exit
	;;
'') ;;
*)
	echo "usage: jax.sh [--check]" >&2
	exit 2
	;;
esac

if installed; then
	exit 0
fi
python=$(interpreter)
mkdir -p "$cache/pjrt"

# Two test runs may start at once; the second finds it done.
exec 9>"$venv.lock"
flock 9
if installed; then
	exit 0
fi
echo "jax.sh: fetching JAX $jax and its plugins into $cache (350 MB, a few minutes)" >&2
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
fetched=$(mktemp -d "$cache/pjrt/fetch.XXXXXX")
trap 'rm -rf "$fetched"' EXIT
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
if ! { pip install "jax==$jax" "jaxlib==$jax" numpy &&
	pip download --no-deps --dest "$fetched" "jax-cuda12-pjrt==$jax" "lammps-jax-pjrt-cpu==$cpu"; } >"$fetched/log" 2>&1; then
	tail -n 5 "$fetched/log" >&2
	echo "jax.sh: pip could not fetch JAX $jax for $("$venv/bin/python" --version) on $(uname -m)" >&2
	exit 1
fi
"$venv/bin/python" - "$fetched" "$plugin" jax_cuda12_pjrt "$cpu_plugin" lammps_jax_pjrt_cpu <<'PY'
import glob, os, shutil, sys, zipfile
folder = sys.argv[1]
for target, name in zip(sys.argv[2::2], sys.argv[3::2]):
    wheel, = glob.glob(os.path.join(folder, name + "-*.whl"))
    with zipfile.ZipFile(wheel) as z:
        library, = [n for n in z.namelist() if n.endswith("_plugin.so")]
        with z.open(library) as source, open(target + ".part", "wb") as part:
            shutil.copyfileobj(source, part, 1 << 20)
    os.rename(target + ".part", target)
PY
echo "$jax $cpu" >"$version"
installed || {
	echo "jax.sh: pip ended well, but JAX $jax is not in $cache" >&2
	exit 1
}
