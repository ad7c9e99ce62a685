package unwind

import (
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
)

// Compile makes the table of a file. What no description covers is asked of
// infer, unless that is nil or the file is for arm64, and that the dynamic linker's entry has
// no caller is known then. It fails with ErrNoFrames, and with
// ErrTooManyRules or ErrTooLarge for what no real file has. Use it inside
// elf.Guard if someone may truncate the file meanwhile.
func Compile(e *elf.File, infer Infer) (*Table, error) {
	contents, address, ok := e.UnwindFrames()
	if !ok {
		return nil, ErrNoFrames
	}
	c := newCompiler(contents, address, e.Machine())
	runtime.LockOSThread() // whose time is that of this, however long it waits for a CPU
	defer runtime.UnlockOSThread()
	c.until = threadclock.Now() + maxCompiling
	if infer != nil {
		c.infer = func(start, end uint64, add func(row)) { c.gap(e, infer, start, end, add) }
	}
	rows, err := c.rows()
	if err != nil {
		return nil, err
	}
	t := &Table{Machine: e.Machine(), Rules: c.rules, Skipped: c.frames.skipped}
	return t, t.layOut(rows)
}

// compiler turns one .eh_frame into rows, and numbers their rules.
type compiler struct {
	frames  frames
	rules   []Rule
	numbers map[Rule]uint16
	last    Rule // the rule asked for last, and its number
	number  uint16
	full    bool
	until   time.Duration // of the thread's CPU time, when it is given up; never if zero
	asked   int           // how often the clock could have been read
	late    bool
	infer   func(start, end uint64, add func(row)) // adds the rows of a gap; may be nil
}

func newCompiler(contents []byte, address uint64, of elf.Machine) *compiler {
	return &compiler{
		frames:  frames{data: contents, address: address, machine: machines[of], commons: map[int]*common{}},
		rules:   []Rule{{}},
		numbers: map[Rule]uint16{{}: 0},
	}
}

func (c *compiler) ruleNumber(r Rule) uint16 {
	if r == c.last {
		return c.number
	}
	number, ok := c.numbers[r]
	if !ok {
		if len(c.rules) >= maxRules {
			c.full = true
			return 0
		}
		number = uint16(len(c.rules))
		c.rules = append(c.rules, r)
		c.numbers[r] = number
	}
	c.last, c.number = r, number
	return number
}

// overdue reports whether the time is over. It reads the clock now and then.
func (c *compiler) overdue() bool {
	if c.asked++; c.asked%1024 == 0 && c.until != 0 && threadclock.Now() > c.until {
		c.late = true
	}
	return c.late
}

// rows converts every description.
func (c *compiler) rows() ([]row, error) {
	estimate := len(c.frames.data) / 8
	rows, extents := make([]row, 0, estimate), make([]extent, 0, estimate/6)
	c.frames.each(func(d description) {
		if d.end == d.start || c.overdue() {
			return
		}
		first := len(rows)
		m := interpreter{common: d.common, machine: c.frames.machine, state: d.common.initial}
		understood := m.run(d.instructions, d.start, d.end, func(at uint64, s *state) {
			rows = append(rows, row{at, c.ruleNumber(c.frames.machine.rule(s, d.common.signal))})
		})
		if !understood {
			// All of it, since it is not known from where on it is wrong.
			rows = append(rows[:first], row{d.start, c.ruleNumber(Rule{Kind: Expression})})
			c.frames.skipped++
		}
		extents = append(extents, extent{d.start, d.end, first, len(rows)})
	})
	if len(extents) == 0 {
		return nil, ErrNoFrames
	}
	rows = join(rows, extents, c.infer)
	if c.late {
		return nil, ErrTooSlow
	}
	if c.full {
		return nil, ErrTooManyRules
	}
	return rows, nil
}

// isLinker reports whether a file is the dynamic linker. A process begins at its entry,
// which glibc leaves without a description (RTLD_START): who stands there has no caller.
func isLinker(e *elf.File) bool { return e.Interpreter() == "" && e.Exports("_dl_debug_state") }

// gap adds the rows of what no description covers.
func (c *compiler) gap(e *elf.File, infer Infer, start, end uint64, add func(row)) {
	if entry := e.Entry(); entry >= start && entry < end && isLinker(e) {
		c.fill(e, infer, start, entry, add)
		add(row{entry, c.ruleNumber(Rule{Kind: Offset, ReturnAddress: End})})
		add(row{address: end})
		return
	}
	c.fill(e, infer, start, end, add)
}

// fill infers the rows of a gap, as far as it is code.
func (c *compiler) fill(e *elf.File, infer Infer, start, end uint64, add func(row)) {
	if e.Machine() != elf.MachineX86_64 {
		return
	}
	for _, s := range e.CodeSegments() {
		from, to := max(start, s.Address), min(end, s.Address+s.Size)
		if from >= to || to-from < paddingBytes || to-from > maxInferred {
			continue
		}
		if c.asked |= 1023; c.overdue() { // a gap may be long: the clock each time
			return
		}
		last := from
		for _, i := range infer(e.CodeAt(from, to-from), from) {
			if i.Address >= last && i.Address < to {
				add(row{i.Address, c.ruleNumber(i.Rule)})
				last = i.Address
			}
		}
		add(row{address: to})
	}
}

// CompileInferred makes a table of rules that were read from code itself, in the
// order of their addresses: of code that no file describes. It fails with
// ErrNoFrames where there are none, ErrTooManyRules and ErrTooLarge.
func CompileInferred(machine elf.Machine, inferred []InferredRule) (*Table, error) {
	c := newCompiler(nil, 0, machine)
	var rows []row
	for _, i := range inferred {
		r := row{i.Address, c.ruleNumber(i.Rule)}
		switch n := len(rows); {
		case n > 0 && rows[n-1].address == r.address:
			rows[n-1] = r
		case n == 0 || rows[n-1].rule != r.rule:
			rows = append(rows, r)
		}
	}
	if c.full {
		return nil, ErrTooManyRules
	}
	if len(c.rules) == 1 {
		return nil, ErrNoFrames
	}
	t := &Table{Machine: machine, Rules: c.rules}
	if err := t.layOut(rows); err != nil {
		return nil, err
	}
	return t, nil
}
