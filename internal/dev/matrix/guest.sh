#!/bin/sh
# The guest's first process: mounts, runs /commands line by line, powers off.
export PATH=/usr/bin:/bin:/sbin HOME=/root TERM=dumb TMPDIR=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
mount -t tmpfs out /out
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
mount -t tracefs tracing /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
ip link set lo up 2>/dev/null
echo "@@ boot $(uname -r) $(uname -m)"
n=0
while IFS= read -r line; do
	echo "@@ begin $n"
	sh -c "$line" </dev/null >/tmp/stdout 2>&1
	rc=$?
	cat /tmp/stdout
	echo "@@ end $n $rc"
	n=$((n + 1))
done </commands
dmesg | grep -E 'BUG:|Oops|WARNING:|Call trace|rcu.*stall|segfault|soft lockup' | head -20 | sed 's/^/@@ dmesg /'
echo "@@ off"
poweroff -f
