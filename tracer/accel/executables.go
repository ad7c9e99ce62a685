package accel

import (
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/symbolize/mlir"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// executables names the executables of PJRT: what jax.jit compiled. The program
// that is handed over for compilation has a name: its first 4 KiB come with the
// call, the rest of a longer one is read out of the process meanwhile. Some callers ask an executable for its name, too; what is
// launched is a loaded executable, another handle, whose executable they ask for.
type Executables struct {
	memory    MemoryReader
	names     map[handleKey]string
	loaded    map[handleKey]uint64 // the executable of a loaded one
	compiling map[handleKey]string // the name of what a thread compiles
	learnt    map[uint32]int       // calls that told something, by process
}

// maxProgram is how much of a program is read: its strings come early.
const maxProgram = 16 << 20

// compile reads the name of what a thread begins to compile.
func (x *Executables) Compile(pid, tid uint32, a *Arguments) {
	key := handleKey{pid, uint64(tid)}
	delete(x.compiling, key)
	if !a.Has(spec.FieldAddress) || !a.Has(spec.FieldBytes) {
		return
	}
	program := make([]byte, min(a.value[spec.FieldBytes], maxProgram))
	if x.memory.Read(pid, a.value[spec.FieldAddress], program) != nil {
		return
	}
	if name := mlir.ModuleName(program); name != "" {
		x.learns(pid)
		x.compiling[key] = name
	}
}

// handleKey is a handle of one process.
type handleKey struct {
	pid    uint32
	handle uint64
}

func NewExecutables(memory MemoryReader) *Executables {
	return &Executables{memory, map[handleKey]string{}, map[handleKey]uint64{}, map[handleKey]string{}, map[uint32]int{}}
}

// learn takes what a call says about executables; text is the name, perhaps with
// more behind it: its length is another of the call's results.
func (x *Executables) Learn(pid, tid uint32, effect spec.Effect, a *Arguments, text string) {
	if !a.Has(spec.FieldHandle) {
		return
	}
	x.learns(pid)
	key := handleKey{pid, a.value[spec.FieldHandle]}
	switch effect {
	case spec.EndsCompile:
		thread := handleKey{pid, uint64(tid)}
		if name := mlir.ModuleName([]byte(text)); name != "" {
			x.names[key] = name
		} else if name, ok := x.compiling[thread]; ok {
			x.names[key] = name
		}
		delete(x.compiling, thread)
	case spec.NamesExecutable:
		if length := a.value[spec.FieldNameBytes]; a.Has(spec.FieldNameBytes) && length < uint64(len(text)) {
			text = text[:length]
		}
		if text != "" && utf8.ValidString(text) {
			x.names[key] = text
		}
	case spec.LinksExecutable:
		if a.Has(spec.FieldKernel) {
			x.loaded[key] = a.value[spec.FieldKernel]
		}
	case spec.ForgetsExecutable:
		delete(x.names, key)
		delete(x.loaded, key)
	}
}

// name is the name of an executable or a loaded one.
func (x *Executables) Name(pid uint32, handle uint64) (string, bool) {
	if name, ok := x.names[handleKey{pid, handle}]; ok {
		return name, true
	}
	executable, ok := x.loaded[handleKey{pid, handle}]
	if !ok {
		return "", false
	}
	name, ok := x.names[handleKey{pid, executable}]
	return name, ok
}

// ended forgets a process.
func (x *Executables) Ended(pid uint32) {
	delete(x.learnt, pid)
	for key := range x.names {
		if key.pid == pid {
			delete(x.names, key)
		}
	}
	for key := range x.loaded {
		if key.pid == pid {
			delete(x.loaded, key)
		}
	}
	for key := range x.compiling {
		if key.pid == pid {
			delete(x.compiling, key)
		}
	}
}

// arrayDetail fills what the catalog's fields say about an array: its elements
// and, where its type has a size, its bytes.
func (a *Arguments) arrayDetail(f *spec.Function, d *event.Detail) {
	if a.Has(spec.FieldTarget) && a.value[spec.FieldTarget] == 0 {
		d.Bytes = nil // nothing is copied: the call only asks how much it would be
	}
	if !a.Has(spec.FieldShapes) {
		return
	}
	rank := a.value[spec.FieldShapes]
	if rank > uint64(spec.FieldShape5-spec.FieldShape0)+1 {
		return
	}
	count := int64(1)
	for i := range spec.Field(rank) {
		if !a.Has(spec.FieldShape0 + i) {
			return
		}
		size := int64(a.value[spec.FieldShape0+i])
		if size < 0 || size > 1<<40 || count > 1<<50/max(1, size) {
			return
		}
		count *= size
	}
	d.ElementCount = &count
	if !a.Has(spec.FieldDtype) || a.value[spec.FieldDtype] >= uint64(len(f.Dtypes)) {
		return
	}
	dtype := f.Dtypes[a.value[spec.FieldDtype]]
	d.Dtype = dtype.Name
	if dtype.Bytes > 0 {
		bytes := count * dtype.Bytes
		d.Bytes = &bytes
	}
}
