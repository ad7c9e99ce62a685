package unwinding

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// crowded is an Unwinder of which tests take the room.
func crowded(t *testing.T) *Unwinder {
	t.Helper()
	w := newWalker(t, "x86")
	t.Cleanup(func() { w.in.Flush() })
	u := newUnwinder(w, Options{})
	t.Cleanup(u.Close)
	return u
}

// add gives a share a file with a table of so many leaves and of rules from a number on.
func (u *Unwinder) add(name string, by *share, leaves, firstRule, rules int) (*file, error) {
	number, err := u.room.newNumber(by)
	if err != nil {
		return nil, err
	}
	f := &file{path: name, number: number, mappers: map[int]bool{1: true}, of: by}
	table := &unwind.Table{Machine: elf.MachineX86_64, PageBits: 8, Pages: 1, Leaves: make([]byte, leaves*unwind.LeafBytes),
		Rules: []unwind.Rule{{}}}
	for i := range rules {
		table.Rules = append(table.Rules, unwind.Rule{Kind: unwind.Offset, CFA: int32(firstRule + i)})
	}
	u.files.byOrigin[name] = f
	err = u.room.publish(f, table, unwind.Digest{})
	if err != nil {
		delete(u.files.byOrigin, name)
		u.room.forget(f)
	}
	return f, err
}

// unmap is what happens when the last process that maps a file ends.
func (f *file) unmap() { clear(f.mappers); f.unused = time.Now() }

// A process has a quarter of the numbers, leaves and rules, a user half; what is left
// is another's, whatever the first still wants.
func TestNobodyTakesAllOfTheUnwindTables(t *testing.T) {
	for name, c := range map[string]struct{ leaves, rules int }{
		"numbers": {1, 1},
		"leaves":  {2000, 1},
		"rules":   {1, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			u := crowded(t)
			u.mu.Lock()
			defer u.mu.Unlock()
			attacker, other := &share{}, &share{}
			firstRule := 1
			take := func(by *share, most int) (n int, err error) {
				for n = range most {
					_, err = u.add(fmt.Sprint(firstRule), by, c.leaves, firstRule, c.rules)
					if firstRule += c.rules; err != nil {
						return n, err
					}
				}
				return most, nil
			}
			for i := range 4 { // its processes
				n, err := take(&share{user: attacker}, maxFiles)
				if !errors.Is(err, ErrQuota) || n == 0 && i < 2 {
					t.Errorf("process %d has %d files, then: %v", i, n, err)
				}
			}
			if attacker.taken.beyond(u.room.whole(), partOfUser) {
				t.Errorf("the user has %+v of %+v", attacker.taken, u.room.whole())
			}
			if n, err := take(&share{user: other}, 3); n != 3 || err != nil {
				t.Errorf("another user has %d of 3 files: %v", n, err)
			}
		})
	}
}

// Numbers, leaves and rules of files that no process maps any more are given to others: a
// process that loads ever new files never runs out.
func TestTablesOfFilesThatWereUnmappedMakeRoomForEver(t *testing.T) {
	u := crowded(t)
	u.mu.Lock()
	defer u.mu.Unlock()
	by := &share{user: &share{}}
	const files, rules = maxFiles + maxFiles/2, 40
	for i := range files {
		f, err := u.add(fmt.Sprint(i), by, 30, 1+i*rules, rules)
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		f.unmap()
	}
	for u.room.evict(nil) {
	}
	if by.taken != (amount{}) || by.user.taken != (amount{}) {
		t.Errorf("%+v, and of the user %+v, are not given back", by.taken, by.user.taken)
	}
	if n := len(u.room.rules.numbers); n != 1 {
		t.Errorf("%d rules are left", n)
	}
	if n := len(u.room.images) + len(u.files.byOrigin); n != 0 {
		t.Errorf("%d tables are left", n)
	}
}

// The share of a process is its user's, as the kernel knows that.
func TestProcessesOfOneUserShareAShare(t *testing.T) {
	u := crowded(t)
	u.mu.Lock()
	defer u.mu.Unlock()
	own, parents := u.quotas.of(os.Getpid()), u.quotas.of(os.Getppid())
	if own == parents || own.user == nil || own.user != parents.user || u.quotas.of(os.Getpid()) != own {
		t.Errorf("%p of user %p, %p of user %p", own, own.user, parents, parents.user)
	}
}

// A file that was unmapped before its table was begun is not looked into any more.
func TestAFileThatNobodyMapsAnyMoreIsNotCompiled(t *testing.T) {
	u := crowded(t)
	u.mu.Lock()
	defer u.mu.Unlock()
	found, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if len(found) == 0 {
		t.Skip("no libc where Debian has it")
	}
	e, err := elf.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	by := &share{}
	u.queue.busy = &file{mappers: map[int]bool{}} // the worker waits for the lock anyway
	f := u.files.findELF("x", e, by)
	if f.state != Waiting || len(u.queue.files) != 1 {
		t.Fatalf("%s, %d waiting", f.state, len(u.queue.files))
	}
	u.files.abandon(f)
	if len(u.queue.files) != 0 || len(u.files.byOrigin) != 0 || f.state != Absent {
		t.Errorf("%s, %d waiting, %d known", f.state, len(u.queue.files), len(u.files.byOrigin))
	}
	u.room.reclaim(time.Now().Add(time.Second))
	if by.taken != (amount{}) {
		t.Errorf("%+v is not given back", by.taken)
	}
	u.queue.busy = nil
}
