#!/bin/sh
# The demo of the README: ebpfprof demo, with a PyTorch that is there or Debian's. `make demo` builds, then calls it.
#
#   EBPFPROF_PYTHON=/path/to/python3   a Python that can import torch (else python3, else Debian's)
#
# The dataset stays behind in demo-dataset, its report in demo-dataset.html; the next demo replaces them.
set -eu
cd "$(dirname "$0")/.."

has_torch() { "$1" -c 'import torch' >/dev/null 2>&1; }

python=
for candidate in ${EBPFPROF_PYTHON:-} python3 /usr/bin/python3; do
	if has_torch "$candidate"; then
		python=$(command -v "$candidate")
		break
	fi
done
# Below root, sudo does what needs privileges.
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
if [ -z "$python" ]; then
	echo "No Python here can import torch: installing Debian's python3-torch, which takes a minute or two"
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-torch >/dev/null || {
		echo "demo.sh: apt-get could not install python3-torch; name a Python that can import torch in EBPFPROF_PYTHON" >&2
		exit 1
	}
	python=/usr/bin/python3
fi
exec $as_root bin/ebpfprof demo --python "$python"
