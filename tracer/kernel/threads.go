package kernel

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// taskIterator is a program of bpf/tasks.bpf.c that lists all threads of the machine.
// Nothing of it runs in the job.
type taskIterator struct {
	program  *ebpf.Collection
	iterator *link.Iter
}

func newTaskIterator(program string) (*taskIterator, error) {
	spec, err := bpf.LoadTasks()
	if err != nil {
		return nil, fmt.Errorf("reading the list of threads: %w", err)
	}
	c, err := bpf.LoadAlone(OnlyPrograms(spec, func(name string) bool { return name == program }))
	if err != nil {
		return nil, LoadError("the list of threads", err)
	}
	i, err := link.AttachIter(link.IterOptions{Program: c.Programs[program]})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("attaching the list of threads: %w", err)
	}
	return &taskIterator{c, i}, nil
}

// listTasks hands on one record after the other.
func listTasks[T any](t *taskIterator, each func(*T)) error {
	list, err := t.iterator.Open()
	if err != nil {
		return fmt.Errorf("listing threads: %w", err)
	}
	defer list.Close()
	raw, err := io.ReadAll(list)
	if err != nil {
		return fmt.Errorf("listing threads: %w", err)
	}
	for size := binary.Size(*new(T)); len(raw) >= size; raw = raw[size:] {
		var e T
		if _, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil {
			return fmt.Errorf("listing threads: %w", err)
		}
		each(&e)
	}
	return nil
}

// Close takes the program out.
func (t *taskIterator) Close() {
	t.iterator.Close()
	t.program.Close()
}

// taskList asks the kernel for the thread pointers of all threads.
type taskList struct{ *taskIterator }

func NewTaskList() (*taskList, error) {
	i, err := newTaskIterator("list_tasks")
	if err != nil {
		return nil, err
	}
	return &taskList{i}, nil
}

// Pointers are the thread pointers of a process's threads.
func (t *taskList) Pointers(pid int) (map[int32]uint64, error) {
	pointers := map[int32]uint64{}
	return pointers, listTasks(t.taskIterator, func(e *bpf.TasksTaskEntry) {
		if int(e.Tgid) == pid {
			pointers[int32(e.Tid)] = e.ThreadPointer
		}
	})
}

// Registers asks the kernel where threads are that do not run.
type Registers struct{ *taskIterator }

// NewRegisters loads the program. It fails where the kernel has no iterator of tasks, or
// not the helper that finds a thread's registers (5.15).
func NewRegisters() (*Registers, error) {
	i, err := newTaskIterator("list_registers")
	if err != nil {
		return nil, err
	}
	return &Registers{i}, nil
}

// Of lists the threads of some processes.
func (r *Registers) Of(wanted func(pid int) bool) ([]bpf.TasksTaskRegisters, error) {
	var threads []bpf.TasksTaskRegisters
	err := listTasks(r.taskIterator, func(t *bpf.TasksTaskRegisters) {
		if wanted(int(t.Start.Tgid)) {
			threads = append(threads, *t)
		}
	})
	return threads, err
}
