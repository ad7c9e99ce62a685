//go:build libbpf

package libbpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Pair is what became of one thing in the kernel with either loader.
type Pair struct{ Ours, Theirs string }

// Alone loads an object as it is compiled by both loaders, and describes its tables and the
// functions of its programs as the kernel has them.
func Alone(name string) (tables, programs map[string]Pair, err error) {
	all, err := compiled()
	if err != nil {
		return nil, nil, err
	}
	ours, err := ebpf.NewCollection(all[name].Copy())
	if err != nil {
		return nil, nil, fmt.Errorf("loading %s by cilium/ebpf: %w", name, err)
	}
	defer ours.Close()
	theirs, err := open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s by libbpf: %w", name, err)
	}
	defer theirs.Close()
	if err := theirs.BPFLoadObject(); err != nil {
		return nil, nil, fmt.Errorf("loading %s by libbpf: %w", name, err)
	}
	tables, programs = map[string]Pair{}, map[string]Pair{}
	for table, m := range ours.Maps {
		found, err := theirs.GetMap(table)
		if err != nil {
			return nil, nil, err
		}
		other, err := mapOf(found.FileDescriptor())
		if err != nil {
			return nil, nil, err
		}
		tables[table] = Pair{describeMap(m), describeMap(other)}
		other.Close()
	}
	for program, p := range ours.Programs {
		found, err := theirs.GetProgram(program)
		if err != nil {
			return nil, nil, err
		}
		other, err := programOf(found.FileDescriptor())
		if err != nil {
			return nil, nil, err
		}
		err = compareFunctions(program, p, other, programs)
		other.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	return tables, programs, nil
}

// compareFunctions adds a pair for each function of a program.
func compareFunctions(program string, ours, theirs *ebpf.Program, to map[string]Pair) error {
	a, err := functions(ours)
	if err != nil {
		return err
	}
	b, err := functions(theirs)
	if err != nil {
		return err
	}
	for _, one := range []map[string]string{a, b} {
		for name := range one {
			to[program+", function "+name] = Pair{a[name], b[name]}
		}
	}
	return nil
}

func mapOf(fd int) (*ebpf.Map, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return ebpf.NewMapFromFD(own)
}

// programOf is the program of a descriptor, which stays the caller's.
func programOf(fd int) (*ebpf.Program, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return ebpf.NewProgramFromFD(own)
}

func describeMap(m *ebpf.Map) string {
	return fmt.Sprintf("%s of %d entries, keys of %d bytes and values of %d, flags %#x",
		m.Type(), m.MaxEntries(), m.KeySize(), m.ValueSize(), m.Flags())
}
