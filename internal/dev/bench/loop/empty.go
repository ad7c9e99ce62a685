package loop

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

const (
	launchLibrary = "libcuda.so.1"
	launchSymbol  = "cuLaunchKernel"
)

// AttachEmpty puts a program that does nothing where the tracer would have its own
// for a launch of the job: at the entry's site, or at the return. It takes a
// uprobe.multi link (Linux 6.6). remove takes it out again.
func AttachEmpty(j *Loop, end bool) (remove func(), err error) {
	path := filepath.Join(j.directory, launchLibrary)
	offset, err := launchSite(path)
	if err != nil {
		return nil, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return nil, err
	}
	file, err := link.OpenExecutable(path)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	attach := file.UprobeMulti
	if end {
		attach = file.UretprobeMulti
	}
	l, err := attach(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{offset}, PID: uint32(j.Process.Pid)})
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return func() { l.Close(); program.Close() }, nil
}

// launchSite is the offset in the file at which the tracer probes a launch.
func launchSite(path string) (uint64, error) {
	e, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer e.Close()
	probes := plan.Library(e, path, catalog.Groups()).Probes
	i := slices.IndexFunc(probes, func(p plan.Probe) bool { return p.Symbol == launchSymbol })
	if i < 0 || probes[i].EntryErr != nil {
		return 0, fmt.Errorf("%s has no site for %s", path, launchSymbol)
	}
	offset, ok := e.FileOffset(probes[i].Address + probes[i].Entry.Offset)
	if !ok {
		return 0, fmt.Errorf("%s: %s lies in no segment", path, launchSymbol)
	}
	return offset, nil
}
