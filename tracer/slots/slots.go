// Package slots hands out the slots of the kernel's probe table: to whom, how many
// at the most, and what is free again. It knows nothing of probes.
//
// The package is no part of the public API: it may change with any version.
package slots

import (
	"errors"
	"fmt"
	"slices"
)

// What of the table one process may have, and one user: a job that maps copy after copy
// of a framework does not take the last slot from a neighbour, nor do its children.
const (
	PartOfProcess = 1.0 / 2
	PartOfUser    = 3.0 / 4
)

// ErrFull and ErrQuota are wrapped by the errors of Reserve.
var (
	ErrFull  = errors.New("the probe table is full")
	ErrQuota = errors.New("its process or user has its share of the probe table")
)

// Owner is who maps a file first, and pays for its slots until they are given back.
type Owner struct {
	PID   int
	Start uint64 // pids are used again
	User  uint32
}

// Amount is what there is.
type Amount struct{ Slots, Files int }

func (m Amount) part(share float64) Amount {
	return Amount{int(float64(m.Slots) * share), int(float64(m.Files) * share)}
}

// Range is of one file: so many slots side by side.
type Range struct {
	Owner
	Base, Slots int
}

// Table is all of it. It belongs to one goroutine.
type Table struct {
	most   Amount
	ranges []Range // by base; those without slots too
}

// New makes a Table of so many slots, for so many files.
func New(most Amount) *Table { return &Table{most: most} }

// Reserve finds room for a file's probes.
func (t *Table) Reserve(o Owner, slots int) (Range, error) {
	var all, ofProcess, ofUser Amount
	for _, r := range t.ranges {
		all.add(r)
		if r.User == o.User {
			ofUser.add(r)
		}
		if r.PID == o.PID && r.Start == o.Start {
			ofProcess.add(r)
		}
	}
	asked := Range{Owner: o, Slots: slots}
	for _, m := range []*Amount{&all, &ofProcess, &ofUser} {
		m.add(asked)
	}
	switch {
	case ofProcess.beyond(t.most.part(PartOfProcess)):
		return Range{}, fmt.Errorf("%w: %d files and %d probes of pid %d", ErrQuota, ofProcess.Files-1, ofProcess.Slots-slots, o.PID)
	case ofUser.beyond(t.most.part(PartOfUser)):
		return Range{}, fmt.Errorf("%w: %d files and %d probes of user %d", ErrQuota, ofUser.Files-1, ofUser.Slots-slots, o.User)
	case all.beyond(t.most):
		return Range{}, fmt.Errorf("%w: %d files and %d probes", ErrFull, all.Files-1, all.Slots-slots)
	}
	at, i := 0, 0
	for ; i < len(t.ranges) && t.ranges[i].Base-at < slots; i++ {
		at = max(at, t.ranges[i].Base+t.ranges[i].Slots)
	}
	if i == len(t.ranges) && at+slots > t.most.Slots {
		return Range{}, fmt.Errorf("%w: %d are left, none of %d side by side", ErrFull, t.most.Slots-all.Slots+slots, slots)
	}
	asked.Base = at
	t.ranges = slices.Insert(t.ranges, i, asked)
	return asked, nil
}

// Free takes a file's range back.
func (t *Table) Free(r Range) {
	if i := slices.Index(t.ranges, r); i >= 0 {
		t.ranges = slices.Delete(t.ranges, i, i+1)
	}
}

// Used is how many slots and files are taken.
func (t *Table) Used() (used Amount) {
	for _, r := range t.ranges {
		used.add(r)
	}
	return used
}

func (m *Amount) add(r Range) {
	m.Slots += r.Slots
	m.Files++
}

func (m Amount) beyond(most Amount) bool { return m.Slots > most.Slots || m.Files > most.Files }
