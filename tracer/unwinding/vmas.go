package unwinding

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// Mappings that walks find by themselves: bpf/unwind_vma.h.

// vmaMaps are the maps for that.
type vmaMaps struct {
	inodes *ebpf.Map // the numbers of files
	vmas   *ebpf.Map // what was found, by process
}

// FindVMAs has walks find the mappings of processes by themselves that they were not told
// of yet. It needs the helper bpf_find_vma of Linux 5.17.
func (m *Maps) FindVMAs() error {
	if err := m.putProcess(untold, (&processTable{}).entry()); err != nil {
		return fmt.Errorf("writing what stands for processes that are not told of yet: %w", err)
	}
	return nil
}

func (m *vmaMaps) putInode(inode bpf.NativeWalkUnwindInode, file *bpf.NativeWalkUnwindInodeFile) error {
	return m.inodes.Put(inode, file)
}

func (m *vmaMaps) deleteInode(inode bpf.NativeWalkUnwindInode) error {
	return deleteFrom(m.inodes, inode)
}

func (m *vmaMaps) forgetVMAs() error {
	var pid uint32
	for range m.vmas.MaxEntries() {
		if m.vmas.NextKey(nil, &pid) != nil {
			return nil
		}
		if err := deleteFrom(m.vmas, pid); err != nil {
			return err
		}
	}
	return nil
}

// tellInode has walks know a file by its inode, where they come before the process's
// mappings do. A file of several segments of code they do not know: there are hardly any.
func (r *room) tellInode(f *file, id inode, size uint64, changed time.Time) {
	if f.number == 0 || len(f.code) != 1 {
		return
	}
	code := f.code[0]
	key := bpf.NativeWalkUnwindInode{Inode: id.number, Device: uint64(id.device.Major)<<20 | uint64(id.device.Minor)}
	err := r.tables.putInode(key, &bpf.NativeWalkUnwindInodeFile{
		Size: size, Changed: changed.Unix(), ChangedNs: uint64(changed.Nanosecond()),
		Offset: code.Offset &^ uint64(os.Getpagesize()-1), End: code.Offset + code.Size, Bias: code.Address - code.Offset, File: uint64(f.number),
	})
	if err == nil && !slices.Contains(r.inodes[f], key) { // else such mappings are not found
		r.inodes[f] = append(r.inodes[f], key)
	}
}

// untellInodes ends that, and reports whether the kernel took it: no walk is led to the
// file's number by its inode, once those are over that are under way.
func (r *room) untellInodes(f *file) bool {
	for _, inode := range r.inodes[f] {
		if r.tables.deleteInode(inode) != nil {
			return false
		}
	}
	delete(r.inodes, f)
	return true
}
