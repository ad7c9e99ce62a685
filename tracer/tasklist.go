package tracer

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

func newTaskList() (*taskList, error) {
	t := &taskList{programs: &bpf.TasksObjects{}}
	if err := bpf.LoadTasksObjects(t.programs, nil); err != nil {
		return nil, loadError("the list of threads", err)
	}
	var err error
	if t.iterator, err = link.AttachIter(link.IterOptions{Program: t.programs.ListTasks}); err != nil {
		t.programs.Close()
		return nil, fmt.Errorf("attaching the list of threads: %w", err)
	}
	return t, nil
}

// pointers are the thread pointers of the threads of some processes.
func (t *taskList) pointers(of map[int]bool) (map[int32]uint64, error) {
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
		if of[int(e.Tgid)] {
			pointers[int32(e.Tid)] = e.ThreadPointer
		}
	}
	return pointers, nil
}

func (t *taskList) close() {
	if t != nil {
		t.iterator.Close()
		t.programs.Close()
	}
}
