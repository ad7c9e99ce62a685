#!/bin/sh
# Installs what runs docs/notebook.ipynb, from PyPI into an environment of its own, to which the
# tests add the wheel: nbconvert, a kernel, DuckDB, pandas, polars.
#
#   notebook.sh           install it if it is missing (0.5 GB on disk)
#   notebook.sh --check   exit status 0 if it is there, 1 if not
#
# What they depend on is not pinned: they run the notebook, and nothing of theirs is published.
set -eu

nbconvert=7.17.2
ipykernel=7.4.0
duckdb=1.5.5
pandas=3.1.1
polars=2.1.0
venv=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/notebook-venv
done=$venv/installed-$nbconvert-$ipykernel-$duckdb-$pandas-$polars

case ${1-} in
--check)
	[ -e "$done" ]
	exit
	;;
'') ;;
*)
	echo "usage: notebook.sh [--check]" >&2
	exit 2
	;;
esac

[ -e "$done" ] && exit 0
mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9
[ -e "$done" ] && exit 0
rm -rf "$venv"
/usr/bin/python3 -m venv "$venv"
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	"nbconvert==$nbconvert" "ipykernel==$ipykernel" "duckdb==$duckdb" "pandas==$pandas" "polars==$polars" >"$venv/install.log" 2>&1; then
	tail -n 5 "$venv/install.log" >&2
	echo "notebook.sh: pip could not fetch what runs the notebook" >&2
	exit 1
fi
touch "$done"
