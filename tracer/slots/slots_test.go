package slots

import (
	"errors"
	"math/rand/v2"
	"testing"
)

var (
	attacker  = Owner{PID: 1, Start: 1, User: 1000}
	neighbour = Owner{PID: 2, Start: 1, User: 1001}
)

func take(t *testing.T, table *Table, o Owner, n int) Range {
	t.Helper()
	r, err := table.Reserve(o, n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFreedSlotsAreReservedAgain(t *testing.T) {
	table := New(Amount{Slots: 100, Files: 100})
	var ranges []Range
	for i := range 10 {
		ranges = append(ranges, take(t, table, Owner{PID: i, User: uint32(i)}, 10))
	}
	last := Owner{PID: 99, User: 99}
	if _, err := table.Reserve(last, 1); !errors.Is(err, ErrFull) {
		t.Fatalf("the table is full: %v", err)
	}
	table.Free(ranges[3])
	table.Free(ranges[7])
	if _, err := table.Reserve(last, 20); !errors.Is(err, ErrFull) {
		t.Errorf("20 are free, not side by side: %v", err)
	}
	table.Free(ranges[4])
	if r := take(t, table, last, 20); r.Base != 30 {
		t.Errorf("20 slots from %d on, want 30", r.Base)
	}
	if used := table.Used(); used != (Amount{90, 8}) {
		t.Errorf("used %+v", used)
	}
}

func TestNoProcessTakesWhatIsOfOthers(t *testing.T) {
	table := New(Amount{Slots: 1000, Files: 1000})
	for range 50 {
		take(t, table, attacker, 10)
	}
	if _, err := table.Reserve(attacker, 10); !errors.Is(err, ErrQuota) {
		t.Errorf("more than half: %v", err)
	}
	child := attacker
	child.PID = 3
	for range 25 {
		take(t, table, child, 10)
	}
	if _, err := table.Reserve(child, 10); !errors.Is(err, ErrQuota) {
		t.Errorf("more than three quarters of one user: %v", err)
	}
	take(t, table, neighbour, 250)
	later := attacker
	later.Start = 2
	if _, err := table.Reserve(later, 1); !errors.Is(err, ErrQuota) {
		t.Errorf("another process of the pid, of the same user: %v", err)
	}
}

// A file takes a descriptor, if no slot.
func TestFilesAreCountedToo(t *testing.T) {
	table := New(Amount{Slots: 1000, Files: 8})
	for range 4 {
		take(t, table, attacker, 0)
	}
	if _, err := table.Reserve(attacker, 0); !errors.Is(err, ErrQuota) {
		t.Errorf("half of the files: %v", err)
	}
	take(t, table, neighbour, 500)
}

func TestNoSlotIsOfTwo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table := New(Amount{Slots: 512, Files: 512})
	var ranges []Range
	for range 20_000 {
		if len(ranges) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(ranges))
			table.Free(ranges[i])
			ranges = append(ranges[:i], ranges[i+1:]...)
			continue
		}
		o := Owner{PID: random.IntN(9), User: uint32(random.IntN(9))}
		if r, err := table.Reserve(o, random.IntN(40)); err == nil {
			ranges = append(ranges, r)
		}
		var of [512]bool
		for _, r := range ranges {
			for i := r.Base; i < r.Base+r.Slots; i++ {
				if of[i] {
					t.Fatalf("slot %d twice, in %v", i, ranges)
				}
				of[i] = true
			}
		}
	}
}
