//go:build libbpf

package libbpf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/aquasecurity/libbpfgo"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// ErrEdited is what Load returns for a specification whose instructions are not those of the
// object any more: the tracer takes out of its programs what an older kernel does not have.
var ErrEdited = errors.New("the programs were changed for this kernel, which libbpf cannot do")

// Loader loads by libbpf.
type Loader struct {
	sync.Mutex
	modules  []*libbpfgo.Module
	programs map[*ebpf.Program]*libbpfgo.BPFProg
	said     []string
}

// New makes a loader, of which there is one at a time.
func New() *Loader {
	l := &Loader{programs: map[*ebpf.Program]*libbpfgo.BPFProg{}}
	libbpfgo.SetLoggerCbs(libbpfgo.Callbacks{Log: func(level int, message string) {
		if level == libbpfgo.LibbpfWarnLevel {
			l.say(message)
		}
	}})
	return l
}

func (l *Loader) say(message string) {
	l.Lock()
	defer l.Unlock()
	l.said = append(l.said, strings.TrimSpace(message))
}

// Warnings are what libbpf complained of.
func (l *Loader) Warnings() string {
	l.Lock()
	defer l.Unlock()
	return strings.Join(l.said, "\n")
}

// Programs is how many it has loaded.
func (l *Loader) Programs() int {
	l.Lock()
	defer l.Unlock()
	return len(l.programs)
}

// Close closes the objects, and with them libbpf's descriptors.
func (l *Loader) Close() {
	l.Lock()
	defer l.Unlock()
	for _, m := range l.modules {
		m.Close()
	}
	l.modules = nil
	libbpfgo.SetLoggerCbs(libbpfgo.Callbacks{})
}

// Load does what ebpf.NewCollectionWithOptions does.
func (l *Loader) Load(spec *ebpf.CollectionSpec, options ebpf.CollectionOptions) (*ebpf.Collection, error) {
	tables := *spec
	tables.Programs = nil
	loaded, err := ebpf.NewCollectionWithOptions(&tables, options)
	if err != nil || len(spec.Programs) == 0 {
		return loaded, err
	}
	if err := l.load(spec, loaded); err != nil {
		loaded.Close()
		return nil, fmt.Errorf("loading by libbpf: %w: %s", err, l.Warnings())
	}
	return loaded, nil
}

func (l *Loader) load(spec *ebpf.CollectionSpec, into *ebpf.Collection) error {
	name, err := objectOf(spec)
	if err != nil {
		return err
	}
	module, err := open(name)
	if err != nil {
		return err
	}
	l.Lock()
	l.modules = append(l.modules, module)
	l.Unlock()
	programs, err := choose(module, spec)
	if err != nil {
		return err
	}
	if err := useMaps(module, into.Maps); err != nil {
		return err
	}
	if err := module.BPFLoadObject(); err != nil {
		return err
	}
	if into.Programs == nil {
		into.Programs = map[string]*ebpf.Program{}
	}
	for name, program := range programs {
		if into.Programs[name], err = programOf(program.FileDescriptor()); err != nil {
			return err
		}
		l.Lock()
		l.programs[into.Programs[name]] = program
		l.Unlock()
	}
	return nil
}

// open opens an object. From memory libbpfgo would raise a limit that the tracer does not need,
// and for which it may have no right.
func open(name string) (*libbpfgo.Module, error) {
	directory, err := os.MkdirTemp("", "libbpf-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	file := filepath.Join(directory, name+".bpf.o")
	if err := os.WriteFile(file, bpf.Objects()[name], 0o600); err != nil {
		return nil, err
	}
	return libbpfgo.NewModuleFromFileArgs(libbpfgo.NewModuleArgs{BPFObjPath: file, SkipMemlockBump: true})
}

// choose has those programs of the object loaded that the specification has.
func choose(module *libbpfgo.Module, spec *ebpf.CollectionSpec) (map[string]*libbpfgo.BPFProg, error) {
	programs := map[string]*libbpfgo.BPFProg{}
	for all := module.Iterator(); ; {
		p := all.NextProgram()
		if p == nil {
			break
		}
		wanted := spec.Programs[p.Name()]
		if err := p.SetAutoload(wanted != nil); err != nil {
			return nil, err
		}
		if wanted == nil {
			continue
		}
		programs[p.Name()] = p
		if wanted.AttachType == ebpf.AttachNone { // for perf events
			if err := p.SetExpectedAttachType(0); err != nil {
				return nil, err
			}
		}
	}
	if len(programs) != len(spec.Programs) {
		return nil, fmt.Errorf("libbpf finds %d of %d programs", len(programs), len(spec.Programs))
	}
	return programs, nil
}

// useMaps gives all of the object's maps those of a collection. They are looked up before one
// is given: libbpf takes the kernel's shorter name over.
func useMaps(module *libbpfgo.Module, made map[string]*ebpf.Map) error {
	of := map[*libbpfgo.BPFMap]*ebpf.Map{}
	for name, m := range made {
		found, err := module.GetMap(name)
		if err != nil {
			return fmt.Errorf("libbpf finds no map %s: %w", name, err)
		}
		of[found] = m
	}
	for all := module.Iterator(); ; {
		found := all.NextMap()
		if found == nil {
			break
		}
		name := found.Name()
		// libbpf makes a table of constants that nothing refers to as well.
		if !strings.HasSuffix(name, ".rodata") && !strings.HasSuffix(name, ".bss") && !strings.HasPrefix(name, ".rodata.") && made[name] == nil {
			return fmt.Errorf("libbpf finds a map %s, which the specification has not", name)
		}
	}
	for found, m := range of {
		if err := found.ReuseFD(m.FD()); err != nil {
			return err
		}
	}
	return nil
}

// compiled are the specifications of the objects as they are, by their names.
var compiled = sync.OnceValues(func() (map[string]*ebpf.CollectionSpec, error) {
	specs := map[string]*ebpf.CollectionSpec{}
	for name, object := range bpf.Objects() {
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
		if err != nil {
			return nil, err
		}
		specs[name] = spec
	}
	return specs, nil
})

// objectOf is the name of the object that has the programs of a specification.
func objectOf(spec *ebpf.CollectionSpec) (string, error) {
	all, err := compiled()
	if err != nil {
		return "", err
	}
	for name, object := range all {
		if !has(object, spec) {
			continue
		}
		for program, p := range spec.Programs {
			if !equal(p, object.Programs[program]) {
				return "", fmt.Errorf("program %s: %w", program, ErrEdited)
			}
		}
		return name, nil
	}
	return "", errors.New("no object has these programs")
}

// has reports whether an object has all programs and maps of a specification, and no other map.
func has(object, spec *ebpf.CollectionSpec) bool {
	for name := range spec.Programs {
		if object.Programs[name] == nil {
			return false
		}
	}
	for name := range spec.Maps {
		if object.Maps[name] == nil {
			return false
		}
	}
	return len(object.Maps) == len(spec.Maps)
}

// equal compares the instructions of two specifications of a program.
func equal(a, b *ebpf.ProgramSpec) bool {
	if len(a.Instructions) != len(b.Instructions) {
		return false
	}
	for i := range a.Instructions {
		x, y := a.Instructions[i], b.Instructions[i]
		if x.OpCode != y.OpCode || x.Dst != y.Dst || x.Src != y.Src || x.Offset != y.Offset || x.Constant != y.Constant ||
			x.Reference() != y.Reference() {
			return false
		}
		f, g := btf.FuncMetadata(&x), btf.FuncMetadata(&y)
		if (f == nil) != (g == nil) || f != nil && f.Linkage != g.Linkage {
			return false
		}
	}
	return true
}

// Objects are the names of the compiled objects.
func Objects() []string {
	var names []string
	for name := range bpf.Objects() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
