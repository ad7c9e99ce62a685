package accel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

func TestCallersAreTheFileWhoseCodeTheAddressIsIn(t *testing.T) {
	c := newCallers()
	c.mapped(7, []*process.Library{
		{Path: "/usr/lib/libcublas.so.12", Segments: []process.Segment{{Start: 0x5000, End: 0x6000}, {Start: 0x6000, End: 0x8000,
			Executable: true}}},
		{Path: "/opt/train", Segments: []process.Segment{{Start: 0x1000, End: 0x2000, Executable: true}}},
	})
	for _, one := range []struct {
		pid     uint32
		address uint64
		want    string
	}{
		{7, 0x6000, "libcublas.so.12"}, {7, 0x7fff, "libcublas.so.12"}, {7, 0x1800, "train"},
		{7, 0x8000, ""}, {7, 0x5800, ""}, {7, 0x0, ""}, {7, ^uint64(0), ""}, {8, 0x6000, ""},
	} {
		if got, ok := c.library(one.pid, one.address); got != one.want || ok != (one.want != "") {
			t.Errorf("pid %d, %#x: %q, %v; want %q", one.pid, one.address, got, ok, one.want)
		}
	}
	c.ended(7)
	if got, ok := c.library(7, 0x6000); ok {
		t.Errorf("of a process that ended: %q", got)
	}
}
