package symbolize

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// ErrKernelHidden: the kernel does not tell this process where its functions
// are (kernel.kptr_restrict, or no CAP_SYSLOG).
var ErrKernelHidden = errors.New("the kernel hides its addresses (kernel.kptr_restrict)")

// KernelNames names the kernel's own code by /proc/kallsyms. Its methods are
// safe for concurrent use.
type KernelNames struct {
	proc, sys string

	mu      sync.Mutex
	table   kernelTable
	modules []byte // /proc/modules as it was when the table was read
	checked time.Time
	err     error
	cache   map[uint64]Frame
}

// kernelTable holds the functions sorted by address: 16 bytes each, and a blob
// of their names.
type kernelTable struct {
	symbols []kernelSymbol
	names   []byte
	modules []kernelModule // 0 is the kernel itself
}

type kernelSymbol struct {
	address uint64
	name    uint32 // in names, up to a NUL
	module  uint16
	end     bool // not a function but where code ends
}

type kernelModule struct {
	name, buildID string
	start, end    uint64
}

// kernelModuleName is the Module of frames in the kernel image.
const kernelModuleName = "[kernel]"

// farthest is how far behind its symbol an address may lie where the end of
// the module is not known: BPF programs have no module.
const farthest = 1 << 20

// recheck is how often an unknown address makes the module list be read again.
const recheck = time.Second

// NewKernelNames reads the kernel's symbols, 50 ms and 4 MB for a usual kernel.
// It is of use also without any: Err says why there are none.
func NewKernelNames() *KernelNames { return newKernelNames("/proc", "/sys") }

func newKernelNames(proc, sys string) *KernelNames {
	k := &KernelNames{proc: proc, sys: sys}
	k.read()
	return k
}

// Err is why kernel frames have no names: ErrKernelHidden, or the error of
// reading /proc/kallsyms. nil when they have.
func (k *KernelNames) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *KernelNames) read() {
	k.cache, k.checked = map[uint64]Frame{}, time.Now()
	k.modules, _ = os.ReadFile(filepath.Join(k.proc, "modules"))
	file, err := os.Open(filepath.Join(k.proc, "kallsyms"))
	if k.err = err; err != nil {
		return
	}
	defer file.Close()
	if k.table, k.err = parseKallsyms(file); k.err != nil {
		return
	}
	if len(k.table.symbols) == 0 {
		k.err = ErrKernelHidden
		return
	}
	k.table.boundModules(k.modules)
	for i := range k.table.modules {
		m := &k.table.modules[i]
		notes := filepath.Join(k.sys, "kernel/notes")
		if i > 0 {
			notes = filepath.Join(k.sys, "module", filepath.Base(m.name), "notes/.note.gnu.build-id")
		}
		contents, _ := os.ReadFile(notes)
		m.buildID = elf.BuildIDOfNotes(contents)
	}
}

// Frame names a kernel address; a return address as in Space.Frame. Without
// names the frame has the address alone, its highest bit cleared, and no build
// id: it changes with every boot.
func (k *KernelNames) Frame(address uint64, returns bool) Frame {
	if returns {
		address--
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f, ok := k.cache[address]; ok {
		return f
	}
	f, ok := k.table.frame(address)
	if !ok && k.err == nil && time.Since(k.checked) > recheck {
		k.checked = time.Now()
		if modules, err := os.ReadFile(filepath.Join(k.proc, "modules")); err == nil && !bytes.Equal(modules, k.modules) {
			k.read()
			f, _ = k.table.frame(address)
		}
	}
	if len(k.cache) >= maxCached {
		clear(k.cache)
	}
	k.cache[address] = f
	return f
}

func (t *kernelTable) frame(address uint64) (Frame, bool) {
	unknown := Frame{Kind: Kernel, Module: kernelModuleName, Offset: int64(address &^ (1 << 63))}
	i, _ := slices.BinarySearchFunc(t.symbols, address, func(s kernelSymbol, address uint64) int {
		return cmp.Or(cmp.Compare(s.address, address), -1)
	})
	if i == 0 || t.symbols[i-1].end {
		return unknown, false
	}
	s := t.symbols[i-1]
	m := &t.modules[s.module]
	if address < m.start || m.end > m.start && address >= m.end || m.end == 0 && address-s.address > farthest {
		return unknown, false
	}
	if address-m.start > 1<<62 { // a list that leaves out where the kernel begins
		return unknown, false
	}
	return Frame{Kind: Kernel, Function: t.name(s), Module: m.name, BuildID: m.buildID, Offset: int64(address - m.start)}, true
}

func (t *kernelTable) name(s kernelSymbol) string {
	name, _, _ := bytes.Cut(t.names[s.name:], []byte{0})
	return string(name)
}

// parseKallsyms reads the functions of lines such as
//
//	ffffffff81000000 T _text
//	ffffffffc0201000 t ftrace_trampoline	[__builtin__ftrace]
//
// There are no sizes: a function ends where the next symbol begins, whatever
// it is. A kernel that hides its addresses writes zeros; those lines are left
// out.
func parseKallsyms(text io.Reader) (kernelTable, error) {
	t := kernelTable{modules: []kernelModule{{name: kernelModuleName}}}
	number := map[string]uint16{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		address, kind, name, module, ok := parseKernelSymbol(lines.Bytes())
		if !ok || name[0] == 0 || len(t.names)+len(name) >= 1<<32-1 {
			continue
		}
		in := number[string(module)]
		if len(module) > 0 && in == 0 {
			if len(t.modules) > 0xffff {
				continue
			}
			in = uint16(len(t.modules))
			number[string(module)] = in
			t.modules = append(t.modules, kernelModule{name: string(module), start: address})
		}
		m := &t.modules[in]
		switch {
		case in > 0:
			m.start = min(m.start, address)
		case string(name) == "_text", m.start == 0:
			m.start = address
		case string(name) == "_end":
			m.end = address
		}
		code := kind|0x20 == 't' || kind|0x20 == 'w'
		s := kernelSymbol{address: address, module: in, end: !code || string(name) == "_etext" || string(name) == "_einittext"}
		if !s.end {
			s.name = uint32(len(t.names))
			t.names = append(append(t.names, name...), 0)
		}
		t.symbols = append(t.symbols, s)
	}
	t.sort()
	return t, lines.Err()
}

// sort keeps one symbol per address: a function rather than the end of one.
func (t *kernelTable) sort() {
	slices.SortStableFunc(t.symbols, func(a, b kernelSymbol) int { return cmp.Compare(a.address, b.address) })
	kept := t.symbols[:0]
	for _, s := range t.symbols {
		if n := len(kept); n > 0 && kept[n-1].address == s.address {
			if kept[n-1].end || !s.end && t.better(s, kept[n-1]) {
				kept[n-1] = s
			}
			continue
		}
		kept = append(kept, s)
	}
	t.symbols = slices.Clip(kept)
}

// better prefers the name with fewer leading underscores, then the shorter.
func (t *kernelTable) better(a, b kernelSymbol) bool {
	x, y := t.name(a), t.name(b)
	barex, barey := len(bytes.TrimLeft([]byte(x), "_")), len(bytes.TrimLeft([]byte(y), "_"))
	return cmp.Or(cmp.Compare(len(x)-barex, len(y)-barey), cmp.Compare(barex, barey)) < 0
}

func parseKernelSymbol(line []byte) (address uint64, kind byte, name, module []byte, ok bool) {
	digits, rest, _ := bytes.Cut(line, []byte{' '})
	if len(digits) == 0 || len(digits) > 16 || len(rest) < 3 || rest[1] != ' ' {
		return 0, 0, nil, nil, false
	}
	for _, c := range digits {
		d := bytes.IndexByte([]byte("0123456789abcdef"), c)
		if d < 0 {
			return 0, 0, nil, nil, false
		}
		address = address<<4 | uint64(d)
	}
	kind = rest[0]
	name, module, _ = bytes.Cut(rest[2:], []byte{'\t'})
	module = bytes.Trim(module, "[] \r")
	return address, kind, name, module, address != 0 && len(name) > 0
}

// boundModules takes the modules' bounds from /proc/modules:
//
//	nvidia 56823808 2 nvidia_uvm, Live 0xffffffffc0a00000 (POE)
func (t *kernelTable) boundModules(text []byte) {
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < 6 {
			continue
		}
		start, ok := number(bytes.TrimPrefix(f[5], []byte("0x")), 16)
		size, ok2 := number(f[1], 10)
		i := slices.IndexFunc(t.modules, func(m kernelModule) bool { return m.name == string(f[0]) })
		// Since Linux 6.4 a module's parts lie apart, and the size is of all of
		// them: the bound is for what comes after, not exact.
		if ok && ok2 && i > 0 && start != 0 && t.modules[i].start >= start {
			t.modules[i].start, t.modules[i].end = start, start+size
		}
	}
}

func number(digits []byte, base uint64) (value uint64, ok bool) {
	for _, c := range digits {
		d := bytes.IndexByte([]byte("0123456789abcdef")[:base], c)
		if d < 0 || value > 1<<59 {
			return 0, false
		}
		value = value*base + uint64(d)
	}
	return value, len(digits) > 0
}
