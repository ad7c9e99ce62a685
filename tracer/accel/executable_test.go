package accel

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// programs are what a process holds at some addresses.
type programs map[uint64]string

func (p programs) Read(_ uint32, address uint64, b []byte) error {
	text, ok := p[address]
	if !ok || len(b) > len(text) {
		return errors.New("not mapped")
	}
	copy(b, text)
	return nil
}

// values are captured arguments, by field.
func values(of map[catalog.Field]uint64) *Arguments {
	a := &Arguments{}
	for f, v := range of {
		a.value[f], a.known[f] = v, true
	}
	return a
}

func TestAnExecutableIsCalledAsItsProgramIs(t *testing.T) {
	const pid, tid, other = 7, 8, 9
	text := "module @jit_step attributes {} {"
	x := NewExecutables(programs{0x1000: text, 0x2000: "\x00garbage"})
	is := func(handle uint64, want string) {
		t.Helper()
		if got, ok := x.Name(pid, handle); got != want || ok != (want != "") {
			t.Errorf("executable %d: %q, %v, want %q", handle, got, ok, want)
		}
	}
	begin := func(tid uint32, address, bytes uint64) {
		x.Compile(pid, tid, values(map[catalog.Field]uint64{catalog.FieldAddress: address, catalog.FieldBytes: bytes}))
	}
	handle := func(effect catalog.Effect, tid uint32, h uint64, text string) {
		x.Learn(pid, tid, effect, values(map[catalog.Field]uint64{catalog.FieldHandle: h}), text)
	}
	begin(tid, 0x1000, uint64(len(text)))
	begin(other, 0x2000, 8) // no program
	handle(catalog.EndsCompile, other, 1, "")
	handle(catalog.EndsCompile, tid, 2, "")
	is(1, "")
	is(2, "jit_step")
	begin(tid, 0x3000, 8) // gone already
	handle(catalog.EndsCompile, tid, 3, "")
	is(3, "")

	// The caller asks: the name of the executable of the loaded one, cut at its length.
	x.Learn(pid, tid, catalog.LinksExecutable, values(map[catalog.Field]uint64{catalog.FieldHandle: 3, catalog.FieldKernel: 4}), "")
	x.Learn(pid, tid, catalog.NamesExecutable, values(map[catalog.Field]uint64{catalog.FieldHandle: 4, catalog.FieldNameBytes: 8}), "jit_lossXXX")
	is(3, "jit_loss")
	handle(catalog.NamesExecutable, tid, 5, "\xff\xfe")
	is(5, "")
	handle(catalog.ForgetsExecutable, tid, 2, "")
	is(2, "")
	x.Ended(pid)
	is(3, "")
}
