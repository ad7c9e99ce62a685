package badinput

import (
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

func needUprobeMulti() bool { return features.Probe().UprobeMulti }

// links counts the uprobe.multi links on a file, whoever owns them.
func links(t *testing.T, file string) (n int) {
	t.Helper()
	all := new(link.Iterator)
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err != nil {
			continue // gone meanwhile
		}
		if multi := info.UprobeMulti(); multi != nil && multi.File == file {
			n++
		}
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}
