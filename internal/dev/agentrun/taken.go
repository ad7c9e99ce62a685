package agentrun

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Taken is what a process has taken.
type Taken struct {
	CPU         float64 // seconds, with those of the children that it has waited for
	RSS         float64 // MiB
	Descriptors float64
	parent      int
}

// Taken is what the agent has, and each of its workers.
func (a *Agent) Taken() (agent Taken, workers []Taken, err error) {
	pid := a.command.Process.Pid // what starts it has become the agent
	if agent, err = Of(pid); err != nil {
		return agent, nil, fmt.Errorf("the agent has ended: %w\n%s", err, &a.said)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return agent, nil, err
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if t, err := statOf(child); err != nil || t.parent != pid {
			continue // or it has ended
		}
		if t, err := Of(child); err == nil {
			workers = append(workers, t)
		}
	}
	return agent, workers, nil
}

// Of is what a process has taken.
func Of(pid int) (t Taken, err error) {
	if t, err = statOf(pid); err != nil {
		return t, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	t.Descriptors = float64(len(open))
	return t, err
}

// statOf reads proc_pid_stat(5).
func statOf(pid int) (t Taken, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, err
	}
	// The command's name is in parentheses and may have any characters.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return t, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	number := func(i int) (n int64) { n, _ = strconv.ParseInt(string(fields[i]), 10, 64); return n }
	const ticks = 100 // of /proc in a second, on every architecture that this runs on
	t.parent = int(number(1))
	for i := 11; i <= 14; i++ { // utime, stime, cutime, cstime
		t.CPU += float64(number(i)) / ticks
	}
	t.RSS = float64(number(21)*int64(os.Getpagesize())) / (1 << 20)
	return t, nil
}

// BytesIn is how many bytes the files below a directory have.
func BytesIn(directory string) (held int64, err error) {
	err = filepath.WalkDir(directory, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				held += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // files go while they are looked at
			return nil
		}
		return err
	})
	return held, err
}
