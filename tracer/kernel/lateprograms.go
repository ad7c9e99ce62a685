package kernel

import (
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// The programs that walk stacks at entries are half of the verifier's work, and a job
// needs them only once a library with such a probe is found. They are loaded when the
// first such probe is put in, or else beside the recording once that runs.

// laterPrograms are these.
var laterPrograms = []string{"call_entry_stack", "call_entry_line"}

// callPrograms are the programs of calls: those of the collection, and those that are
// loaded later.
type callPrograms struct {
	call  *ebpf.Collection
	later map[string]*lateProgram // by name
	// loading: LoadLater was called.
	loading atomic.Bool
}

// lateProgram is one program that is loaded when it is first asked for.
type lateProgram struct {
	once    sync.Once
	load    func() (*ebpf.Program, error)
	program *ebpf.Program
	err     error
}

func (l *lateProgram) get() (*ebpf.Program, error) {
	l.once.Do(func() { l.program, l.err = l.load() })
	return l.program, l.err
}

// close waits for a load that is under way; from then on there is none.
func (l *lateProgram) close() {
	l.once.Do(func() { l.err = os.ErrClosed })
	if l.program != nil {
		l.program.Close()
	}
}

// postpone takes those programs out of a specification. Their maps are those of the
// collection of the others, which is loaded first.
func (k *callPrograms) postpone(spec *ebpf.CollectionSpec) {
	k.later = map[string]*lateProgram{}
	for _, name := range laterPrograms {
		one := OnlyPrograms(spec, func(other string) bool { return other == name })
		k.later[name] = &lateProgram{load: func() (*ebpf.Program, error) {
			c, err := bpf.Load(one, k.call.Maps)
			if err != nil {
				return nil, LoadError("the program "+name, err)
			}
			defer c.Close()
			return c.DetachProgram(name), nil
		}}
	}
	for name := range k.later {
		delete(spec.Programs, name)
	}
}

// LoadLater loads them beside what the caller does next. Whoever needs one that the
// kernel refuses reports that.
func (k *callPrograms) LoadLater() {
	if k.loading.Swap(true) {
		return
	}
	var all sync.WaitGroup
	for _, l := range k.later {
		all.Go(func() { _, _ = l.get() })
	}
	go func() {
		all.Wait()
		bpf.ForgetKernelTypes()
	}()
}

// WaitLater returns once all are loaded, or why one is not.
func (k *callPrograms) WaitLater() error {
	k.LoadLater()
	for _, l := range k.later {
		if _, err := l.get(); err != nil {
			return err
		}
	}
	return nil
}

// ready returns once the programs for some sites are loaded, before anything is put in:
// what is in costs the job, and is not to wait for the verifier.
func (k *attacher) ready(s *Sites) error {
	for name, l := range map[string]*uprobe.Sites{"call_entry_stack": &s.Stack, "call_entry_line": &s.Line} {
		if len(l.Offsets) == 0 {
			continue
		}
		if _, err := k.programs.program(name); err != nil {
			return err
		}
	}
	return nil
}

// CallPrograms are those of calls by their names.
func (k *callPrograms) CallPrograms() (map[string]*ebpf.Program, error) {
	all := maps.Clone(k.call.Programs)
	for name, l := range k.later {
		p, err := l.get()
		if err != nil {
			return nil, err
		}
		all[name] = p
	}
	return all, nil
}

// program returns a program of calls, once it is loaded.
func (k *callPrograms) program(name string) (*ebpf.Program, error) {
	l, ok := k.later[name]
	if !ok {
		return k.call.Programs[name], nil
	}
	k.LoadLater() // a library that has the one has the other as well, mostly
	return l.get()
}

// OnlyPrograms is a specification with some programs of another, and all else: what they
// have in common is not to be changed any more. The loader copies what it changes.
func OnlyPrograms(spec *ebpf.CollectionSpec, these func(name string) bool) *ebpf.CollectionSpec {
	some := *spec
	some.Programs = maps.Clone(spec.Programs)
	maps.DeleteFunc(some.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !these(name) })
	return &some
}

// close waits for what is being loaded.
func (k *callPrograms) close() {
	for _, l := range k.later {
		l.close()
	}
}
