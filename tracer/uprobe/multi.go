package uprobe

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// createMulti is the kernel's description of a uprobe.multi link: the link_create and
// uprobe_multi members of union bpf_attr in include/uapi/linux/bpf.h.
type createMulti struct {
	program, target, attachType, flags    uint32
	path, offsets, refCtrOffsets, cookies uint64
	count, multiFlags, process, _         uint32
}

// multiReturn is BPF_F_UPROBE_MULTI_RETURN.
const multiReturn = 1

// attachAll makes one link of all sites.
func attachAll(path string, program *ebpf.Program, sites Sites, how How) (link.Link, error) {
	if len(sites.Offsets) == 0 || len(sites.Cookies) != len(sites.Offsets) {
		return nil, errors.New("no site, or not a cookie for each")
	}
	name, err := unix.ByteSliceFromString(path)
	if err != nil {
		return nil, err
	}
	what := &createMulti{
		program: uint32(program.FD()), attachType: uint32(ebpf.AttachTraceUprobeMulti),
		count: uint32(len(sites.Offsets)), process: uint32(how.PID),
	}
	if how.Return {
		what.multiFlags = multiReturn
	}
	var pinned runtime.Pinner
	defer pinned.Unpin()
	address := func(p unsafe.Pointer) uint64 {
		pinned.Pin(p)
		return uint64(uintptr(p))
	}
	what.path, what.offsets, what.cookies = address(unsafe.Pointer(&name[0])), address(unsafe.Pointer(&sites.Offsets[0])),
		address(unsafe.Pointer(&sites.Cookies[0]))
	counters := sites.counters()
	if counters != nil {
		what.refCtrOffsets = address(unsafe.Pointer(&counters[0]))
	}
	changing.Lock()
	fd, err := sheltered(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(address(unsafe.Pointer(what))), unsafe.Sizeof(*what))
	changing.Unlock()
	runtime.KeepAlive(program)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("%w: no process %d", os.ErrNotExist, how.PID)
	case err != nil:
		return nil, fmt.Errorf("making a uprobe.multi link: %w", err)
	}
	return link.NewFromFD(int(fd))
}

// shelteredLink is one whose probes are taken out in a process of their own.
type shelteredLink struct{ link.Link }

// Close takes the probes out and returns when the kernel has let go of them.
func (l shelteredLink) Close() error { return l.Remove()() }

// Remove takes the probes out. It returns when no call of the job meets them any more, or
// nearly so; what it returns waits until the kernel has let go of them as well, which takes
// some grace periods of RCU, 40 ms and more. The kernel takes out what a link holds when its
// last descriptor is closed, which is a copy that the other process closes.
func (l shelteredLink) Remove() (wait func() error) {
	closing, err := l.remove()
	return func() error {
		for _, c := range closing {
			_, closed := c.wait()
			err = errors.Join(err, closed)
		}
		return err
	}
}

// remove begins the calls that take the probes out.
func (l shelteredLink) remove() (closing []*call, err error) {
	var last []int
	keep := func(fd int) {
		if copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			last = append(last, copied)
		}
	}
	if of, ok := l.Link.(interface{ FD() int }); ok {
		keep(of.FD())
	}
	if of, ok := l.Link.(link.PerfEvent); ok {
		if event, err := of.PerfEvent(); err == nil {
			keep(int(event.Fd()))
			event.Close()
		}
	}
	err = l.Link.Close()
	for _, fd := range last {
		closing = append(closing, inTurn(unix.SYS_CLOSE, uintptr(fd)))
	}
	return closing, err
}
