package kernel

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// taskList asks the kernel for the thread pointers of all threads: bpf/tasks.bpf.c.
// Nothing of it runs in the job.
type taskList struct {
	programs *bpf.TasksObjects
	iterator *link.Iter
}

func NewTaskList() (*taskList, error) {
	t := &taskList{programs: &bpf.TasksObjects{}}
	if err := bpf.LoadTasksObjects(t.programs, nil); err != nil {
		return nil, LoadError("the list of threads", err)
	}
	var err error
	if t.iterator, err = link.AttachIter(link.IterOptions{Program: t.programs.ListTasks}); err != nil {
		t.programs.Close()
		return nil, fmt.Errorf("attaching the list of threads: %w", err)
	}
	return t, nil
}

// Pointers are the thread pointers of a process's threads.
func (t *taskList) Pointers(pid int) (map[int32]uint64, error) {
	list, err := t.iterator.Open()
	if err != nil {
		return nil, fmt.Errorf("listing threads: %w", err)
	}
	defer list.Close()
	raw, err := io.ReadAll(list)
	if err != nil {
		return nil, fmt.Errorf("listing threads: %w", err)
	}
	pointers := map[int32]uint64{}
	size := binary.Size(bpf.TasksTaskEntry{})
	for ; len(raw) >= size; raw = raw[size:] {
		var e bpf.TasksTaskEntry
		if _, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil {
			return nil, fmt.Errorf("listing threads: %w", err)
		}
		if int(e.Tgid) == pid {
			pointers[int32(e.Tid)] = e.ThreadPointer
		}
	}
	return pointers, nil
}

// Close takes the program out.
func (t *taskList) Close() {
	t.iterator.Close()
	t.programs.Close()
}
