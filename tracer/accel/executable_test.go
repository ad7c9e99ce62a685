package accel

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
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
func values(of map[spec.Field]uint64) *Arguments {
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
		x.Compile(pid, tid, values(map[spec.Field]uint64{spec.FieldAddress: address, spec.FieldBytes: bytes}))
	}
	handle := func(effect spec.Effect, tid uint32, h uint64, text string) {
		x.Learn(pid, tid, effect, values(map[spec.Field]uint64{spec.FieldHandle: h}), text)
	}
	begin(tid, 0x1000, uint64(len(text)))
	begin(other, 0x2000, 8) // no program
	handle(spec.EndsCompile, other, 1, "")
	handle(spec.EndsCompile, tid, 2, "")
	is(1, "")
	is(2, "jit_step")
	begin(tid, 0x3000, 8) // gone already
	handle(spec.EndsCompile, tid, 3, "")
	is(3, "")

	// The caller asks: the name of the executable of the loaded one, cut at its length.
	x.Learn(pid, tid, spec.LinksExecutable, values(map[spec.Field]uint64{spec.FieldHandle: 3, spec.FieldKernel: 4}), "")
	x.Learn(pid, tid, spec.NamesExecutable, values(map[spec.Field]uint64{spec.FieldHandle: 4, spec.FieldNameBytes: 8}), "jit_lossXXX")
	is(3, "jit_loss")
	handle(spec.NamesExecutable, tid, 5, "\xff\xfe")
	is(5, "")
	handle(spec.ForgetsExecutable, tid, 2, "")
	is(2, "")
	x.Ended(pid)
	is(3, "")
}
