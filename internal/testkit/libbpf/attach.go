//go:build libbpf

package libbpf

// #include <stdlib.h>
// #include "attach.h"
import "C"

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/aquasecurity/libbpfgo"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// upstreamLink is a link of libbpf's.
type upstreamLink struct {
	link.Link
	of *C.struct_bpf_link
}

// Close has libbpf take the probes out.
func (l *upstreamLink) Close() error {
	first := l.Link.Close()
	if C.bpf_link__destroy(l.of) != 0 {
		return fmt.Errorf("libbpf does not destroy a link")
	}
	return first
}

// Attach does what uprobe.Attach does, for a program that this loader has loaded. libbpfgo
// attaches without cookies and to one place only, so these calls are libbpf's own.
func (l *Loader) Attach(path string, program *ebpf.Program, sites uprobe.Sites, how uprobe.How) ([]link.Link, error) {
	l.Lock()
	of := l.programs[program]
	l.Unlock()
	if of == nil {
		return nil, fmt.Errorf("libbpf has not loaded %s", program)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	pid := C.int(how.PID)
	if how.PID == 0 {
		pid = -1 // every process; 0 is libbpf's own
	}
	counters := slices.Clone(sites.Counters)
	if len(counters) > 0 {
		counters = append(counters, make([]uint64, len(sites.Offsets)-len(counters))...)
	}
	var made []link.Link
	add := func(one *C.struct_bpf_link, err error) error {
		if one == nil {
			return fmt.Errorf("libbpf attaching: %w: %s", err, l.Warnings())
		}
		fd, err := unix.FcntlInt(uintptr(C.bpf_link__fd(one)), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		known, err := link.NewFromFD(fd)
		if err != nil {
			return err
		}
		made = append(made, uprobe.Sheltered(&upstreamLink{known, one}))
		return nil
	}
	if how.Multi {
		var counts *C.ulong
		if len(counters) > 0 {
			counts = (*C.ulong)(&counters[0])
		}
		one, err := C.attach_all(pointer(of), pid, name, (*C.ulong)(&sites.Offsets[0]), counts, (*C.__u64)(&sites.Cookies[0]),
			C.size_t(len(sites.Offsets)), C.bool(how.Return))
		err = add(one, err)
		return made, err
	}
	for i, offset := range sites.Offsets {
		counter := uint64(0)
		if len(counters) > 0 {
			counter = counters[i]
		}
		one, err := C.attach_one(pointer(of), pid, name, C.size_t(offset), C.size_t(counter), C.__u64(sites.Cookies[i]), C.bool(how.Return))
		if err := add(one, err); err != nil {
			return made, fmt.Errorf("at file offset %#x: %w", offset, err)
		}
	}
	return made, nil
}

// pointer is libbpf's program of libbpfgo's, which keeps it to itself.
func pointer(p *libbpfgo.BPFProg) unsafe.Pointer {
	return reflect.ValueOf(p).Elem().FieldByName("prog").UnsafePointer()
}
