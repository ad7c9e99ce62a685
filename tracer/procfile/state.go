package procfile

import (
	"bytes"
	"strconv"
)

// State is the letter that ps shows of a process (proc_pid_stat(5)), 0 where there is none. To ask
// for it waits for nothing.
func State(pid int) byte {
	text, err := Read("/proc/"+strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return 0
	}
	// The name before it, in parentheses, may hold any character.
	if end := bytes.LastIndexByte(text, ')'); end >= 0 && end+2 < len(text) {
		return text[end+2]
	}
	return 0
}
