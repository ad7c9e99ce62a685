package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// reading is what the tracer takes at one moment, by name.
type reading map[string]float64

// watchedMaps are the kernel's tables that fill with processes, threads and files. The
// kernel cuts names at 15 bytes.
var watchedMaps = []string{"targets", "threads", "waits", "scopes", "python_runtimes", "unwind_processes", "unwind_files"}

// slack is how much each may grow from the second quarter of the time to the last
// and still count as flat: what comes and goes at any moment.
var slack = map[string]float64{"rss_mib": 32, "descriptors": 64}

// otherSlack is that of the kernel's tables.
const otherSlack = 64

func read(pid int) (reading, error) {
	r := reading{}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kib, _ := strconv.Atoi(string(bytes.Fields(value)[0]))
			r["rss_mib"] = float64(kib) / 1024
		}
	}
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return nil, err
	}
	r["descriptors"] = float64(len(infos))
	for _, path := range infos {
		if err := r.readMap(path); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readMap counts the entries of the map behind a descriptor, if it is one of those
// that are watched.
func (r reading) readMap(fdinfo string) error {
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
	known := slices.IndexFunc(watchedMaps, func(name string) bool { return name[:min(len(name), 15)] == info.Name })
	if known < 0 || m.Type() != ebpf.Hash {
		return nil
	}
	var key any // nil: before the first
	n := 0
	for {
		next, err := m.NextKeyBytes(key)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		if next == nil {
			break
		}
		if n++; n > int(m.MaxEntries()) {
			break // it changes as fast as it is read
		}
		key = next
	}
	r[watchedMaps[known]] = float64(n)
	return nil
}

// judge prints the most of each quarter of the time, and fails for what grows.
func judge(w io.Writer, readings []reading) error {
	if len(readings) < 8 {
		return fmt.Errorf("%d readings are too few to judge by", len(readings))
	}
	quarter := func(i int, name string) (most float64) {
		for _, r := range readings[i*len(readings)/4 : (i+1)*len(readings)/4] {
			most = max(most, r[name])
		}
		return most
	}
	var names, grown []string
	for name := range readings[len(readings)-1] {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "| at the most in each quarter | 1 | 2 | 3 | 4 |\n|---|---:|---:|---:|---:|\n")
	for _, name := range names {
		fmt.Fprintf(w, "| %s |", strings.ReplaceAll(name, "_", " "))
		for i := range 4 {
			fmt.Fprintf(w, " %.0f |", quarter(i, name))
		}
		fmt.Fprintln(w)
		allowed, ok := slack[name]
		if !ok {
			allowed = otherSlack
		}
		if last, before := quarter(3, name), quarter(1, name); last > before*1.1+allowed {
			grown = append(grown, fmt.Sprintf("%s from %.0f to %.0f", name, before, last))
		}
	}
	if len(grown) > 0 {
		return fmt.Errorf("not flat: %s", strings.Join(grown, "; "))
	}
	return nil
}
