package cpython

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

func FuzzLineTable(f *testing.F) {
	f.Add(8, 1, []byte{0, 1, 6, 2, 255, 0, 4, 0x80})
	f.Add(10, 7, []byte{4, 0, 8, 0x80, 2, 1, 0, 3})
	f.Add(12, 1, []byte{0x80, 0, 0xf0, 0x41, 2, 3, 0xd8, 0x80 | 13<<3, 0x7f, 0x7f})
	f.Fuzz(func(t *testing.T, minor, first int, table []byte) {
		lines := NewLineTable(minor, first, table)
		end := 0
		lines.ranges(func(r lineRange) bool {
			if r.start < 0 || r.end < r.start || r.start < end {
				t.Fatalf("the range [%d, %d) after one that ends at %d", r.start, r.end, end)
			}
			end = r.end
			return true
		})
		marked := lines
		marked.mark()
		for _, unit := range []int{-1, 0, 1, len(table) / 2, len(table), 1 << 30} {
			line, known := lines.Line(unit)
			if again, also := marked.Line(unit); again != line || also != known {
				t.Fatalf("unit %d: line %d, %t, from a mark %d, %t", unit, line, known, again, also)
			}
		}
	})
}

func FuzzDebugOffsets(f *testing.F) {
	f.Add(debugBytes(0x030d00f0, debugFields313, plausible))
	f.Add(debugBytes(0x030e00f0, debugFields314, plausible))
	f.Fuzz(func(t *testing.T, b []byte) {
		debug, err := ParseDebugOffsets(b)
		if err != nil {
			return
		}
		table := Lookup(debug.Version)
		if table == nil {
			return // 3.13t
		}
		o := debug.Apply(table.Offsets)
		if o.check() != nil {
			return
		}
		rt := &Runtime{Version: debug.Version, Offsets: o, Address: tapeRuntime, Pthread: pthreads[elf.MachineX86_64]}
		readAll(rt, tape(&table.Offsets))
	})
}

// readAll reads all that is read by offsets: a panic is a failure, whatever it finds.
func readAll(rt *Runtime, m fakeMemory) {
	of := memory{m, SearchBudget()}
	if threads, err := rt.readInterpreters(of); err == nil {
		_ = rt.findKey(of, threads)
		_ = rt.findLocks(of)
	}
	r := NewResolver(rt, m)
	for _, address := range []uint64{tapeCode, tapeCode + 8, tapeRuntime, 0, ^uint64(0) - 16} {
		if code, err := r.Resolve(address, 0); err == nil {
			for _, instruction := range []int32{-2, -1, 0, 1 << 30} {
				code.Line(instruction)
			}
		}
	}
}

// Where things are on the tape.
const (
	tapeRuntime     = 0x100000
	tapeInterpreter = 0x200000
	tapeState       = 0x300000
	tapeThread      = 0x400000
	tapeCode        = 0x500000
)

// tape is the memory of an interpreter of one thread that runs one function, laid out by a
// table.
func tape(o *Offsets) fakeMemory {
	m := fakeMemory{
		tapeRuntime: make([]byte, 1<<15), tapeInterpreter: make([]byte, 1<<15), tapeState: make([]byte, 1<<12), tapeThread: make([]byte, 1<<12),
	}
	if o.RuntimeInterpreters != Absent {
		m.word(tapeRuntime+uint64(o.RuntimeInterpreters), tapeInterpreter)
		m.word(tapeRuntime+uint64(o.RuntimeMain), tapeInterpreter)
	}
	m.word(tapeRuntime+uint64(o.RuntimeAutoTSS), 1|3<<32)
	m.word(tapeInterpreter+uint64(o.InterpreterThreads), tapeState)
	m.word(tapeState+uint64(o.StateInterpreter), tapeInterpreter)
	m.word(tapeState+uint64(o.StateThread), tapeThread)
	m.code(o, tapeCode, 0, "train", "/job/train.py")
	return m
}
