package python

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// compareStanding holds the walk from outside against what the kernel's, in user space,
// found in a tape: every tape of these tests is one of both.
func compareStanding(t *testing.T, arguments []string, of *replayed) {
	t.Helper()
	tape, err := os.ReadFile(arguments[0])
	if err != nil {
		t.Fatal(err)
	}
	var rt bpf.PythonWalkPythonRuntime
	var start bpf.PythonWalkWalkStart
	head := bytes.NewReader(tape)
	for _, part := range []any{&rt, &start} {
		if err := binary.Read(head, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	read := regions(tape[len(tape)-head.Len():]).ReadAt
	if len(arguments) > 1 {
		switch _, err := strconv.Atoi(arguments[1]); {
		case err == nil:
			memory, err := os.Open("/proc/" + arguments[1] + "/mem")
			if err != nil {
				t.Fatal(err)
			}
			defer memory.Close()
			read = memory.ReadAt
		case arguments[1] != "fail":
			return // what the walk before has cached
		}
	}
	offsets := cpython.Offsets{
		CodeArgcount: int(rt.CodeArgcount), CodeKwonly: int(rt.CodeKwonly), CodeFlags: int(rt.CodeFlags), CodeLine: int(rt.CodeLine),
		CodeName: int(rt.CodeName), CodeLinetable: int(rt.CodeLinetable),
	}
	walker := Walker{&rt, offsets.Checksum}
	got := walker.Walk(&start, func(address uint64, to []byte) bool { _, err := read(to, int64(address)); return err == nil }, maxFrames)
	var frames []bpf.PythonWalkPythonFrame
	for _, f := range got.Frames {
		frames = append(frames, bpf.PythonWalkPythonFrame(f))
	}
	if got.Outcome.Name() != of.outcome || !slices.Equal(frames, of.frames) {
		t.Errorf("from outside %s with %x, in the kernel %s with %x", got.Outcome.Name(), frames, of.outcome, of.frames)
	}
	var anchors []uint64
	var ends []int
	for _, s := range got.Segments {
		anchors, ends = append(anchors, s.Anchor), append(ends, int(s.End))
	}
	if !slices.Equal(anchors, of.anchors) || !slices.Equal(ends, of.ends) {
		t.Errorf("segments from outside %x %v, in the kernel %x %v", anchors, ends, of.anchors, of.ends)
	}
}
