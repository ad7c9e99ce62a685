// Package places hands out the places of the kernel's probe table: to whom, how many
// at the most, and what is free again. It knows nothing of probes.
package places

import (
	"errors"
	"fmt"
	"slices"
)

// What of the table one process may have, and one user: a job that maps copy after copy
// of a framework does not take the last place from a neighbour, nor do its children.
const (
	PartOfProcess = 1.0 / 2
	PartOfUser    = 3.0 / 4
)

// ErrFull and ErrQuota are wrapped by the errors of Take.
var (
	ErrFull  = errors.New("the probe table is full")
	ErrQuota = errors.New("its process or user has its share of the probe table")
)

// Owner is who maps a file first, and pays for its places until they are given back.
type Owner struct {
	PID   int
	Start uint64 // pids are used again
	User  uint32
}

// Most is what there is.
type Most struct{ Places, Files int }

func (m Most) part(share float64) Most {
	return Most{int(float64(m.Places) * share), int(float64(m.Files) * share)}
}

// Room is of one file: so many places side by side.
type Room struct {
	Owner
	Base, Places int
}

// Table is all of it. It belongs to one goroutine.
type Table struct {
	most  Most
	rooms []Room // by base; those without places too
}

// New makes a Table of so many places, for so many files.
func New(most Most) *Table { return &Table{most: most} }

// Take finds room for a file's probes.
func (t *Table) Take(o Owner, places int) (Room, error) {
	var all, ofProcess, ofUser Most
	for _, r := range t.rooms {
		all.add(r)
		if r.User == o.User {
			ofUser.add(r)
		}
		if r.PID == o.PID && r.Start == o.Start {
			ofProcess.add(r)
		}
	}
	asked := Room{Owner: o, Places: places}
	for _, m := range []*Most{&all, &ofProcess, &ofUser} {
		m.add(asked)
	}
	switch {
	case ofProcess.beyond(t.most.part(PartOfProcess)):
		return Room{}, fmt.Errorf("%w: %d files and %d probes of pid %d", ErrQuota, ofProcess.Files-1, ofProcess.Places-places, o.PID)
	case ofUser.beyond(t.most.part(PartOfUser)):
		return Room{}, fmt.Errorf("%w: %d files and %d probes of user %d", ErrQuota, ofUser.Files-1, ofUser.Places-places, o.User)
	case all.beyond(t.most):
		return Room{}, fmt.Errorf("%w: %d files and %d probes", ErrFull, all.Files-1, all.Places-places)
	}
	at, i := 0, 0
	for ; i < len(t.rooms) && t.rooms[i].Base-at < places; i++ {
		at = max(at, t.rooms[i].Base+t.rooms[i].Places)
	}
	if i == len(t.rooms) && at+places > t.most.Places {
		return Room{}, fmt.Errorf("%w: %d are left, none of %d side by side", ErrFull, t.most.Places-all.Places+places, places)
	}
	asked.Base = at
	t.rooms = slices.Insert(t.rooms, i, asked)
	return asked, nil
}

// Give takes a file's room back.
func (t *Table) Give(r Room) {
	if i := slices.Index(t.rooms, r); i >= 0 {
		t.rooms = slices.Delete(t.rooms, i, i+1)
	}
}

// Used is how many places and files are taken.
func (t *Table) Used() (used Most) {
	for _, r := range t.rooms {
		used.add(r)
	}
	return used
}

func (m *Most) add(r Room) {
	m.Places += r.Places
	m.Files++
}

func (m Most) beyond(most Most) bool { return m.Places > most.Places || m.Files > most.Files }
