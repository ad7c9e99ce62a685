#!/bin/sh
# After the installation, and after the removal: systemd reads its units again. Nothing is started: a store has to be named
# in /etc/ebpfprof first.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
