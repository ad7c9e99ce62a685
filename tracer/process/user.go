package process

import (
	"bytes"
	"strconv"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// UnknownUser is the user of a process that is gone.
const UnknownUser = ^uint32(0)

// User is who a process belongs to: its real user, in the tracer's user namespace;
// UnknownUser once it has ended. Its status says so, not the owner of /proc/PID: that
// is root where a process has asked not to be looked into (prctl(2), PR_SET_DUMPABLE),
// as any may, or cannot be, since its user may run its program but not read it.
func User(pid int) uint32 {
	status, err := procfile.Read(FS{}.pidPath(pid, "status"), 0)
	if err != nil {
		return UnknownUser
	}
	return parseUser(status)
}

// parseUser reads the first field of "Uid: 1000 1000 1000 1000".
func parseUser(status []byte) uint32 {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		if fields := bytes.Fields(value); len(fields) > 0 {
			if id, err := strconv.ParseUint(string(fields[0]), 10, 32); err == nil {
				return uint32(id)
			}
		}
		break
	}
	return UnknownUser
}
