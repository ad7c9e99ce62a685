package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

func addStack(t *testing.T, s *stacks.Table, raw []byte) {
	t.Helper()
	r, ok := stacks.Parse(raw)
	if !ok {
		t.Fatal("a record that is none")
	}
	s.Add(&r)
}
