#!/bin/sh
# Before the removal, not before an upgrade: deb says remove, rpm how many versions stay.
set -e
case ${1-} in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now ebpfprof-registrar.timer || true
	fi
	;;
esac
