package accel

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// How the name of a launched kernel is known: span.name_source.
const (
	NameGetFunction = "getfunction"   // the call that made the handle named it
	NameStruct      = "cufunc_struct" // read from the memory behind the handle
	NameHostStub    = "host_stub"     // the symbol of the host function that stands for it
	NameLibrary     = "library"       // only which library launched it
	NameUnknown     = "unknown"       // the span has the name of its function
)

// Namer names a kernel whose handle was made before the recording, or a
// host function, by what lies behind the handle in the process. source is one
// of the names above.
type Namer interface {
	KernelName(pid uint32, kernel KernelHandle) (symbol, source string, ok bool)
}

// nameLearner is a Namer that learns from handles whose name is known from
// the call that made them.
type nameLearner interface {
	Learnt(pid uint32, kernel KernelHandle, symbol string)
}

// KernelHandle is what a launch names its kernel by.
type KernelHandle struct {
	Runtime string
	Handle  uint64
	Stub    bool // a host function, not the runtime's handle
}

type kernelKey struct {
	pid uint32
	KernelHandle
}

// kernelName is what is known of one kernel of one process.
type kernelName struct {
	name   string // as torch.profiler shows it: demangled, with its parameters
	symbol string // as the module has it
	source string
	module uint64 // its module, 0 where that is not known
}

// kernelNames knows what kernels are called. Handles die with their module and
// come again for other kernels.
type kernelNames struct {
	known map[kernelKey]*kernelName
	// ofProcess is how many of these are a process's.
	ofProcess map[uint32]int
	hints     map[uint32]map[uint32]uint64 // by process: the host function of a thread's next launch
	namers    []Namer
	// callers says who launched what has no name.
	callers *callers
}

func newKernelNames() *kernelNames {
	return &kernelNames{known: map[kernelKey]*kernelName{}, ofProcess: map[uint32]int{}, hints: map[uint32]map[uint32]uint64{},
		callers: newCallers()}
}

func (n *kernelNames) learn(key kernelKey, symbol, source string, module uint64) *kernelName {
	k := &kernelName{name: demangleKernel(symbol), symbol: symbol, source: source, module: module}
	n.put(key, k)
	return k
}

var noKernelName = &kernelName{source: NameUnknown}

// find names a kernel; hint is the host function that the runtime library was
// called for, 0 if none was seen.
func (n *kernelNames) find(key kernelKey, hint uint64) *kernelName {
	if k, ok := n.known[key]; ok && (k != noKernelName || hint == 0) {
		return k
	}
	if k := n.ask(key); k != nil {
		return k
	}
	if hint != 0 {
		if k := n.find(kernelKey{key.pid, KernelHandle{key.Runtime, hint, true}}, 0); k != noKernelName {
			named := *k
			named.source = NameHostStub
			n.put(key, &named)
			return &named
		}
	}
	n.put(key, noKernelName)
	return noKernelName
}

func (n *kernelNames) ask(key kernelKey) *kernelName {
	for _, namer := range n.namers {
		if symbol, source, ok := namer.KernelName(key.pid, key.KernelHandle); ok {
			return n.learn(key, symbol, source, 0)
		}
	}
	return nil
}

// tell lets the namers learn from a name that is certain.
func (n *kernelNames) tell(key kernelKey, symbol string) {
	for _, namer := range n.namers {
		if learner, ok := namer.(nameLearner); ok {
			learner.Learnt(key.pid, key.KernelHandle, symbol)
		}
	}
}

// apply keeps what a call says of names.
func (n *kernelNames) apply(c *Call) {
	switch c.f.Effect {
	case spec.NamesKernel:
		if c.text == "" {
			return
		}
		module := c.args.value[spec.FieldModule]
		for field, stub := range map[spec.Field]bool{spec.FieldHandle: false, spec.FieldHostStub: true} {
			if handle := c.args.value[field]; handle != 0 {
				source := NameGetFunction
				if stub {
					source = NameHostStub
				}
				n.learn(c.kernelKey(handle, stub), c.text, source, module)
				n.tell(c.kernelKey(handle, stub), c.text)
			}
		}
	case spec.LinksKernel:
		if k := n.find(c.kernelKey(c.args.value[spec.FieldKernel], false), 0); k != noKernelName {
			n.put(c.kernelKey(c.args.value[spec.FieldHandle], false), k)
		}
	case spec.LoadsModule, spec.UnloadsModule:
		n.unload(c.pid, c.f.Runtime, c.args.value[spec.FieldModule])
	case spec.StubHint:
		n.hint(c.pid, c.tid, c.args.value[spec.FieldHostStub])
	}
}

func (c *Call) kernelKey(handle uint64, stub bool) kernelKey {
	return kernelKey{c.pid, KernelHandle{c.f.Runtime, handle, stub}}
}

// unload forgets the kernels of a module, and those of which only what lay
// behind their handle is known: they may have been of this module.
func (n *kernelNames) unload(pid uint32, runtime string, module uint64) {
	if module == 0 {
		return
	}
	for key, k := range n.known {
		if key.pid == pid && key.Runtime == runtime && (k.module == module || k.source == NameStruct) {
			n.remove(key)
		}
	}
}

// remapped forgets what could not be named before a process mapped new files.
func (n *kernelNames) remapped(pid uint32) {
	for key, k := range n.known {
		if key.pid == pid && k == noKernelName {
			n.remove(key)
		}
	}
}

func (n *kernelNames) ended(pid uint32) {
	n.forget(pid)
	delete(n.hints, pid)
	n.callers.ended(pid)
}

// name gives a launch its kernel's name.
func (c *Call) name() {
	n := c.state.names
	var k *kernelName
	switch {
	case c.args.Has(spec.FieldKernel):
		k = n.find(c.kernelKey(c.args.value[spec.FieldKernel], false), n.hinted(c.pid, c.tid))
	case c.args.Has(spec.FieldHostStub):
		k = n.find(c.kernelKey(c.args.value[spec.FieldHostStub], true), 0)
	default:
		k = noKernelName
	}
	if k == noKernelName && c.args.Has(spec.FieldCaller) {
		if library, ok := n.callers.library(c.pid, c.args.value[spec.FieldCaller]); ok {
			k = &kernelName{name: "kernel of " + library, source: NameLibrary}
		}
	}
	c.detail().NameSource, c.detail().Symbol = k.source, k.symbol
	if k.name != "" {
		c.span.Call = c.state.rows.Name(c.r.Spec, c.span.Call, k.name)
	}
}

const deviceStub = "__device_stub__"

// demangleKernel is the name of a kernel as people know it. The host function
// that HIP's compiler makes for it has a prefix of its own.
func demangleKernel(symbol string) string {
	return strings.Replace(demangle.Full(symbol), deviceStub, "", 1)
}
