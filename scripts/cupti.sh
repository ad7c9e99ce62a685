#!/usr/bin/env bash
# Builds the library that `run --device-times cupti` puts into a job, against the headers of NVIDIA's wheels of CUPTI,
# which are fetched once into the cache (20 MB) and are no part of this repository. ebpfprof built without it says so.
#
#   cupti.sh            fetch what is missing and build
#   cupti.sh --check    say whether it is built; exit status 1 if not
set -euo pipefail
cd "$(dirname "$0")/.."

from=internal/record/injection/cupti to=internal/record/injection/built/libebpfprof-cupti.so
cache=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/cupti

case ${1-} in
--check)
	[ -s "$to" ] || { echo "missing: $to"; exit 1; }
	exit 0
	;;
'') ;;
*)
	echo "usage: cupti.sh [--check]" >&2
	exit 2
	;;
esac

# The package, and the names that its version of CUPTI has for its latest kinds of records. The last is compiled against.
packages='
nvidia-cuda-cupti-cu12==12.1.105 CUpti_ActivityKernel9 CUpti_ActivityMemcpy5 CUpti_ActivitySynchronization
nvidia-cuda-cupti-cu12==12.9.79 CUpti_ActivityKernel9 CUpti_ActivityMemcpy6 CUpti_ActivitySynchronization2
nvidia-cuda-cupti==13.2.86 CUpti_ActivityKernel11 CUpti_ActivityMemcpy6 CUpti_ActivitySynchronization2
nvidia-cuda-cupti==13.0.85 CUpti_ActivityKernel10 CUpti_ActivityMemcpy6 CUpti_ActivitySynchronization2
'

# fetch NAME==VERSION prints the directory of the package's headers.
fetch() {
	local dir=$cache/${1/==/-}
	if [ ! -d "$dir" ]; then
		local work
		work=$(mktemp -d "$cache/fetching.XXXXXX")
		python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work" "$1" >&2
		python3 - "$work" <<'P'
import glob, sys, zipfile
for wheel in glob.glob(sys.argv[1] + "/*.whl"):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(sys.argv[1], [n for n in z.namelist() if "/include/" in n])
P
		rm -f "$work"/*.whl
		mv -T "$work" "$dir"
	fi
	dirname "$(find "$dir" -name cupti_activity.h | head -1)"
}

# calls HEADER ENUM PREFIX STEMS: the functions of an enumeration that give a device work or wait for it, one a line.
calls() {
	grep -oE "${2}_$3($4)[A-Za-z0-9_]*" "$1" | sort -u | sed 's/$/,/'
}

mkdir -p "$cache"
exec 9>"$cache.lock"
flock 9
while read -r package kernel copy wait; do
	[ -n "$package" ] || continue
	include=$(fetch "$package")
	"${CC:-cc}" -I"$from" -isystem "$include" -DKERNEL="$kernel" -DMEMCPY="$copy" -DSYNCHRONIZATION="$wait" -fsyntax-only "$from/layout.c"
done <<<"$packages"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stems='Launch|GraphLaunch|Memcpy|Memset|MemPrefetch|StreamSynchronize|EventSynchronize|CtxSynchronize|DeviceSynchronize|StreamWaitEvent'
calls "$include/cupti_driver_cbid.h" CUPTI_DRIVER_TRACE_CBID cu "$stems" >"$work/driver_calls.h"
calls "$include/cupti_runtime_cbid.h" CUPTI_RUNTIME_TRACE_CBID cuda "$stems" >"$work/runtime_calls.h"
"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -fcf-protection=none -fno-stack-protector -shared -s \
	-ffile-prefix-map="$PWD"=. -I"$from" -isystem "$include" -I"$work" -Wl,-soname,libebpfprof-cupti.so -o "$work/library.so" "$from/library.c" -ldl
mv "$work/library.so" "$to"
