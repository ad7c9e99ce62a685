// Package mapfill reads how full the tables of a running recording are in the kernel:
// of any process that has them open, by whoever may look at its descriptors.
package mapfill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
)

// Fill is one table's.
type Fill struct {
	Name       string // in bpf/*.h
	Used, Most int
}

// Tables are those that fill with processes, threads and scopes.
var Tables = []string{"targets", "threads", "waits", "scopes", "python_runtimes", "unwind_processes"}

// nameBytes is where the kernel cuts names.
const nameBytes = 15

// Of reads the tables of a recording, in the order of Tables; those that it has not are
// left out.
func Of(pid int) ([]Fill, error) {
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return nil, err
	}
	found := map[string]Fill{}
	for _, path := range infos {
		if err := read(path, found); err != nil {
			return nil, err
		}
	}
	var all []Fill
	for _, name := range Tables {
		if f, ok := found[name]; ok {
			all = append(all, f)
		}
	}
	return all, nil
}

// read counts the entries of the map behind a descriptor, if it is one of Tables.
func read(fdinfo string, found map[string]Fill) error {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return nil // closed meanwhile
	}
	at := bytes.Index(text, []byte("map_id:"))
	if at < 0 || bytes.Contains(text, []byte("link_id:")) {
		return nil
	}
	id, err := strconv.Atoi(string(bytes.Fields(text[at+len("map_id:"):])[0]))
	if err != nil {
		return err
	}
	m, err := ebpf.NewMapFromID(ebpf.MapID(id))
	if err != nil {
		return nil // likewise
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return err
	}
	known := slices.IndexFunc(Tables, func(name string) bool { return name[:min(len(name), nameBytes)] == info.Name })
	if known < 0 || m.Type() != ebpf.Hash {
		return nil
	}
	n, err := entries(m)
	if err != nil {
		return err
	}
	found[Tables[known]] = Fill{Tables[known], n, int(m.MaxEntries())}
	return nil
}

// entries counts those of a map that changes meanwhile.
func entries(m *ebpf.Map) (n int, err error) {
	var key any // nil: before the first
	for n < int(m.MaxEntries()) {
		next, err := m.NextKeyBytes(key)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return n, err
		}
		if next == nil {
			break
		}
		n++
		key = next
	}
	return n, nil
}

// Recordings are the processes that have such tables open: running ones.
func Recordings() (pids []int) {
	commands, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range commands {
		comm, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(comm, []byte("ebpfprof")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if tables, err := Of(pid); err == nil && len(tables) > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
