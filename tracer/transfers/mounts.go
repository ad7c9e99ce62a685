package transfers

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// mounts are what /proc says of the mounts whose numbers the kernel gave. Their
// directories are the job's to name, and their number its to choose.
type mounts struct {
	known   map[mountKey]mount
	unknown int // of those that were asked for
	read    func(path string, limit int) ([]byte, error)
}

// mountKey is a mount; another may have its number later, on another device.
type mountKey struct{ id, device uint32 }

type mount struct{ point, fileSystem string }

const (
	// mostMounts are remembered, and so asked for: each time a file of the job's length
	// is read.
	mostMounts = 1024
	// mountInfoBytes are read of it at the most: some ten thousand mounts.
	mountInfoBytes = 2 << 20
	// longestPoint is how long a directory's name may be.
	longestPoint = 4096
)

func newMounts() *mounts { return &mounts{known: map[mountKey]mount{}, read: procfile.Read} }

// find is a mount as a process sees it.
func (m *mounts) find(pid, id, device uint32) mount {
	key := mountKey{id, device}
	at, ok := m.known[key]
	if ok || len(m.known) >= mostMounts {
		return at
	}
	at, ok = m.look(fmt.Sprintf("/proc/%d/mountinfo", pid), key)
	if !ok { // the process may have ended, and its mounts be ours
		at, ok = m.look("/proc/self/mountinfo", key)
	}
	if !ok && device>>20 != 0 { // the kernel's own, such as pipes, have no major number and no place
		m.unknown++
	}
	m.known[key] = at
	return at
}

func (m *mounts) look(path string, key mountKey) (mount, bool) {
	raw, err := m.read(path, mountInfoBytes)
	if err != nil {
		return mount{}, false
	}
	prefix := []byte(strconv.FormatUint(uint64(key.id), 10) + " ")
	for line := range bytes.Lines(raw) {
		if bytes.HasPrefix(line, prefix) {
			return parseMount(string(line), deviceName(key.device))
		}
	}
	return mount{}, false
}

// parseMount reads a line of mountinfo: number, parent, device, root, directory, options,
// some optional fields, a dash, type, source, options of the file system.
func parseMount(line, device string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	fields, behind := strings.Fields(before), strings.Fields(after)
	if !ok || len(fields) < 6 || len(behind) < 1 || fields[2] != device || len(fields[4]) > longestPoint {
		return mount{}, false
	}
	return mount{point: strings.ToValidUTF8(unescape(fields[4]), "\uFFFD"), fileSystem: strings.ToValidUTF8(behind[0], "\uFFFD")}, true
}

// unescape turns what the kernel writes for blanks and the like back: \040.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
