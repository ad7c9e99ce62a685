package transfers

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// filePath is the file that a place of a thread is of, if files have places of their own.
type filePath struct {
	generation uint32
	whole      bool     // up to the root of its mount
	names      []string // root first
}

// Path takes in the names of a file, as the kernel has them: the file's first. They are
// the job's to choose.
func (t *Table) Path(r *bpf.SampleIoPathRecord) {
	of := t.thread(&bpf.SampleIoRecord{Tgid: r.Tgid, Tid: r.Tid, BornNs: r.BornNs})
	if of == nil {
		return
	}
	raw := make([]byte, min(int(r.Bytes), len(r.Names)))
	for i := range raw {
		raw[i] = byte(r.Names[i])
	}
	p := filePath{generation: r.Generation, whole: r.Whole == 1}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte{0}), []byte{0}) {
		if len(name) > 0 {
			p.names = append(p.names, strings.ToValidUTF8(string(name), "\uFFFD"))
		}
	}
	slices.Reverse(p.names)
	of.paths[int(r.Slot)%slots] = p
}

// path is the path of what a place is of, below the directory where its mount is; without
// that directory it begins at the mount, with no slash. "" where it is not known.
func (of *thread) path(slot, generation uint32, mount string) string {
	p := &of.paths[int(slot)%slots]
	if p.generation != generation || len(p.names) == 0 && !p.whole {
		return ""
	}
	path := strings.Join(p.names, "/")
	switch {
	case !p.whole:
		path = "…/" + path
		if mount == "" || mount == "/" {
			return path
		}
	case mount == "":
		return path
	case path == "": // the file itself is mounted
		return mount
	}
	return strings.TrimSuffix(mount, "/") + "/" + path
}
