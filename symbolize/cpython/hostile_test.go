package cpython

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Any one field of the offsets that a build says of itself may be any number: it is refused,
// or nothing is read beyond what is there.
func TestEveryHostileOffsetIsRefusedOrHarmless(t *testing.T) {
	for _, c := range []struct {
		version uint64
		fields  string
		table   *Table
	}{{0x030d00f0, debugFields313, &table313}, {0x030e00f0, debugFields314, &table314}} {
		honest := honestOffsets(&c.table.Offsets)
		debug, err := ParseDebugOffsets(debugBytes(c.version, c.fields, honest))
		if err != nil {
			t.Fatal(err)
		}
		o := debug.Apply(c.table.Offsets)
		if err := o.check(); err != nil {
			t.Fatalf("the offsets of a real build are refused: %v", err)
		}
		refused := 0
		for _, name := range strings.Fields(c.fields) {
			for _, value := range []uint64{0, 8, 24, 128, 153, 156, 159, 160, 200, 204, 255, 4096, 1 << 16, 1 << 31, 1 << 40, ^uint64(0)} {
				hostile := func(field string) uint64 {
					if field == name {
						return value
					}
					if strings.HasSuffix(field, ".size") && field != "unicode.asciiobject_size" {
						return 1 << 24 // which lets any offset pass
					}
					return honest(field)
				}
				debug, err := ParseDebugOffsets(debugBytes(c.version, c.fields, hostile))
				if err != nil {
					refused++
					continue
				}
				o := debug.Apply(c.table.Offsets)
				if o.check() != nil {
					refused++
					continue
				}
				readAll(&Runtime{Version: debug.Version, Offsets: o, Address: tapeRuntime, Pthread: pthreads[elf.MachineX86_64]},
					tape(&c.table.Offsets))
			}
		}
		if refused == 0 {
			t.Error("nothing was refused")
		}
	}
}

// honestOffsets are what a build of a table says of itself.
func honestOffsets(o *Offsets) func(name string) uint64 {
	known := map[string]int{
		"runtime.interpreters_head": o.RuntimeInterpreters, "runtime.size": o.RuntimeSize,
		"interpreter.next": o.InterpreterNext, "interpreter.threads_head": o.InterpreterThreads, "interpreter.ceval_gil": o.InterpreterGIL,
		"interpreter.gil": 1000, "interpreter.gil_holder": 1000 + o.GILHolder, "interpreter.gc": o.InterpreterCollecting - 100,
		"gc.collecting": 100,
		"thread.next":   o.StateNext, "thread.interp": o.StateInterpreter, "thread.current_frame": o.StateFrames,
		"thread.thread_id":        o.StateThread,
		"thread.native_thread_id": o.StateNative, "frame.executable": o.FrameCode, "frame.previous": o.FramePrevious,
		"frame.instr_ptr": o.FrameInstruction, "frame.owner": o.FrameOwner, "code.argcount": o.CodeArgcount, "code.firstlineno": o.CodeLine,
		"code.filename": o.CodeFilename, "code.name": o.CodeName, "code.qualname": o.CodeQualname, "code.linetable": o.CodeLinetable,
		"code.co_code_adaptive": o.CodeStart, "object.ob_type": o.ObjectType, "type.tp_name": o.TypeName, "unicode.length": o.UnicodeLength,
		"unicode.state": o.UnicodeState, "unicode.asciiobject_size": o.UnicodeASCII, "bytes.ob_size": o.BytesSize, "bytes.ob_sval": o.BytesData,
	}
	return func(name string) uint64 {
		if v, ok := known[name]; ok {
			return uint64(v)
		}
		if strings.HasSuffix(name, ".size") {
			return 1 << 20
		}
		return 0
	}
}

// A list that leads to itself is read once, however many threads it pretends to have.
func TestListsThatGoInCirclesEnd(t *testing.T) {
	o := table313.Offsets
	m := tape(&o)
	m.word(tapeState+uint64(o.StateNext), tapeState)
	m.word(tapeInterpreter+uint64(o.InterpreterNext), tapeInterpreter)
	rt := &Runtime{Version: Version{3, 13, 0, false}, Offsets: o, Address: tapeRuntime, Pthread: pthreads[elf.MachineX86_64]}
	of := memory{m, SearchBudget()}
	threads, err := rt.readInterpreters(of)
	if err != nil || len(threads) != 1 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	if read := searchReads - of.budget.reads; read > 20 {
		t.Errorf("%d reads for one interpreter and one thread", read)
	}
	m.word(tapeRuntime+uint64(o.RuntimeAutoTSS), 0) // no key where the version has it: every one is tried
	if err := rt.findKey(of, threads); err == nil {
		t.Error("a key was found")
	}
	if read := searchReads - of.budget.reads; read > 5000 {
		t.Errorf("%d reads for the keys of one thread", read)
	}
}

// Whatever the lists lead to, a process has a number of reads, over all searches in it.
func TestASearchEndsWithItsBudget(t *testing.T) {
	o := table313.Offsets
	m := tape(&o)
	rt := &Runtime{Version: Version{3, 13, 0, false}, Offsets: o, Address: tapeRuntime, Pthread: pthreads[elf.MachineX86_64]}
	of := memory{m, SearchBudget()}
	of.budget.reads = 3
	if _, err := rt.readInterpreters(of); !errors.Is(err, ErrBudget) {
		t.Errorf("beyond the budget: %v", err)
	}
}

func TestNamesBeyondTheBudgetAreCountedAndComeBack(t *testing.T) {
	o := table313.Offsets
	m := tape(&o)
	r := NewResolver(&Runtime{Version: Version{3, 13, 0, false}, Offsets: o}, m)
	at := time.Unix(1000, 0)
	budget := r.memory.budget
	budget.now, budget.reads = func() time.Time { return at }, 2
	if _, err := r.Resolve(tapeCode, 0); err == nil || r.Unresolved[UnresolvedBudget] != 1 {
		t.Fatalf("%v, %v are counted", err, r.Unresolved)
	}
	at = at.Add(time.Second)
	if code, err := r.Resolve(tapeCode, 0); err != nil || code.Function != "train" {
		t.Errorf("a second later: %v", err)
	}
}

type fullAccount struct{ left, kept int }

func (a *fullAccount) Left() int     { return a.left - a.kept }
func (a *fullAccount) Add(bytes int) { a.kept += bytes }

// Code objects are few and their line tables as large as one may be: what is kept of them is
// counted in bytes.
func TestWhatIsKeptOfCodeIsBoundedInBytes(t *testing.T) {
	o := table313.Offsets
	m := tape(&o)
	table := make([]byte, maxLineTable)
	for i := range table {
		table[i] = 0xe8 // one code unit, the same line
	}
	m[0x600000] = append(make([]byte, o.BytesData), table...)
	m.word(0x600000+uint64(o.BytesSize), uint64(len(table)))
	r := NewResolver(&Runtime{Version: Version{3, 13, 0, false}, Offsets: o}, m)
	r.memory.budget = nil
	account := &fullAccount{left: 3*maxLineTable + maxLineTable/2}
	r.Charge(account)
	for i := range uint64(20) {
		address := tapeCode + 0x100000*(i+2)
		m.code(&o, address, 0, "f", "/f.py")
		m.word(address+uint64(o.CodeLinetable), 0x600000)
		code, err := r.Resolve(address, checksumOf(&o, m, address))
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := code.Line(maxLineTable - 1); !ok || line != code.FirstLine {
			t.Fatalf("the last instruction is on line %d, %t", line, ok)
		}
	}
	if account.kept > account.left || len(r.byKey) == 0 || len(r.byKey) > 3 {
		t.Errorf("%d bytes of %d, %d code objects", account.kept, account.left, len(r.byKey))
	}
	if r.Forget(); account.kept != 0 {
		t.Errorf("%d bytes are still counted", account.kept)
	}
}
