// Package mapfill reads how full a running recording is: its tables in the kernel, and
// what it says itself of its limits, in a table as well. Of any process that has them
// open, by whoever may look at its descriptors.
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

	"github.com/ebpfprof/ebpfprof/bpf"
)

// Fill is one table's, or one limit's.
type Fill struct {
	Name       string // in bpf/*.h, or of --limit
	Used, Most int
}

// Tables are those that fill with processes, threads and scopes.
var Tables = []string{"targets", "threads", "waits", "scopes", "python_runtimes", "unwind_processes"}

// nameBytes is where the kernel cuts names.
const nameBytes = 15

// Of reads the tables of a recording, in the order of Tables; those that it has not are
// left out.
func Of(pid int) ([]Fill, error) {
	found := map[string]Fill{}
	err := each(pid, func(m *ebpf.Map, info *ebpf.MapInfo) error {
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
	})
	var all []Fill
	for _, name := range Tables {
		if f, ok := found[name]; ok {
			all = append(all, f)
		}
	}
	return all, err
}

// Limits reads how much of each limit a recording uses, as it said within the last
// seconds; none of one that does not say.
func Limits(pid int) (all []Fill, err error) {
	err = each(pid, func(m *ebpf.Map, info *ebpf.MapInfo) error {
		if info.Name != bpf.LimitUseMap || m.Type() != ebpf.Array || len(all) > 0 {
			return nil
		}
		for i := range m.MaxEntries() {
			var use bpf.LimitUse
			if err := m.Lookup(i, &use); err != nil {
				return err
			}
			if use.Name() != "" {
				all = append(all, Fill{use.Name(), int(use.Used), int(use.Most)})
			}
		}
		return nil
	})
	return all, err
}

// each visits the maps that a process has open.
func each(pid int, visit func(*ebpf.Map, *ebpf.MapInfo) error) error {
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return err
	}
	for _, path := range infos {
		if err := one(path, visit); err != nil {
			return err
		}
	}
	return nil
}

// one visits the map behind a descriptor, if it is one.
func one(fdinfo string, visit func(*ebpf.Map, *ebpf.MapInfo) error) error {
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
	return visit(m, info)
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
