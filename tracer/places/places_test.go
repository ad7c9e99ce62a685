package places

import (
	"errors"
	"math/rand/v2"
	"testing"
)

var (
	attacker  = Owner{PID: 1, Start: 1, User: 1000}
	neighbour = Owner{PID: 2, Start: 1, User: 1001}
)

func take(t *testing.T, table *Table, o Owner, n int) Room {
	t.Helper()
	r, err := table.Take(o, n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatIsGivenBackIsTakenAgain(t *testing.T) {
	table := New(Most{Places: 100, Files: 100})
	var rooms []Room
	for i := range 10 {
		rooms = append(rooms, take(t, table, Owner{PID: i, User: uint32(i)}, 10))
	}
	last := Owner{PID: 99, User: 99}
	if _, err := table.Take(last, 1); !errors.Is(err, ErrFull) {
		t.Fatalf("the table is full: %v", err)
	}
	table.Give(rooms[3])
	table.Give(rooms[7])
	if _, err := table.Take(last, 20); !errors.Is(err, ErrFull) {
		t.Errorf("20 are free, not side by side: %v", err)
	}
	table.Give(rooms[4])
	if r := take(t, table, last, 20); r.Base != 30 {
		t.Errorf("20 places from %d on, want 30", r.Base)
	}
	if used := table.Used(); used != (Most{90, 8}) {
		t.Errorf("used %+v", used)
	}
}

func TestNoProcessTakesWhatIsOfOthers(t *testing.T) {
	table := New(Most{Places: 1000, Files: 1000})
	for range 50 {
		take(t, table, attacker, 10)
	}
	if _, err := table.Take(attacker, 10); !errors.Is(err, ErrQuota) {
		t.Errorf("more than half: %v", err)
	}
	child := attacker
	child.PID = 3
	for range 25 {
		take(t, table, child, 10)
	}
	if _, err := table.Take(child, 10); !errors.Is(err, ErrQuota) {
		t.Errorf("more than three quarters of one user: %v", err)
	}
	take(t, table, neighbour, 250)
	later := attacker
	later.Start = 2
	if _, err := table.Take(later, 1); !errors.Is(err, ErrQuota) {
		t.Errorf("another process of the pid, of the same user: %v", err)
	}
}

// A file takes a descriptor, if no place.
func TestFilesAreCountedToo(t *testing.T) {
	table := New(Most{Places: 1000, Files: 8})
	for range 4 {
		take(t, table, attacker, 0)
	}
	if _, err := table.Take(attacker, 0); !errors.Is(err, ErrQuota) {
		t.Errorf("half of the files: %v", err)
	}
	take(t, table, neighbour, 500)
}

func TestNoPlaceIsOfTwo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table := New(Most{Places: 512, Files: 512})
	var rooms []Room
	for range 20_000 {
		if len(rooms) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(rooms))
			table.Give(rooms[i])
			rooms = append(rooms[:i], rooms[i+1:]...)
			continue
		}
		o := Owner{PID: random.IntN(9), User: uint32(random.IntN(9))}
		if r, err := table.Take(o, random.IntN(40)); err == nil {
			rooms = append(rooms, r)
		}
		var of [512]bool
		for _, r := range rooms {
			for i := r.Base; i < r.Base+r.Places; i++ {
				if of[i] {
					t.Fatalf("place %d twice, in %v", i, rooms)
				}
				of[i] = true
			}
		}
	}
}
