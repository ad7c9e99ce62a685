package outbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// away is a store that takes files only while it is there.
type away struct {
	there bool
	keys  []string
	left  int // files that it takes before it goes away
}

func (a *away) Put(_ context.Context, key string, _ []byte) error {
	if !a.there || a.left == 0 {
		return errors.New("away")
	}
	a.left--
	a.keys = append(a.keys, key)
	return nil
}

func limit(bytes int64) func() int64 { return func() int64 { return bytes } }

// recording puts what is sent of a recording that began at some second.
func recording(t *testing.T, files *store.Directory, second int64) {
	t.Helper()
	at := time.Unix(1_700_000_000+second, 0).UnixNano()
	b := store.Batch{Session: fmt.Sprint(second), Job: "j", Host: "h", Patterns: []pattern.Pattern{{BeginNS: at, Name: "f"}},
		Steps: []pattern.Step{{PeriodNS: 1}}}
	if _, err := store.Send(t.Context(), files, b); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *store.Directory {
	t.Helper()
	files, err := Open(filepath.Join(t.TempDir(), "outbox"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestWhatTheStoreDidNotTakeIsSentWhenItIsBack(t *testing.T) {
	files, to := open(t), &away{left: 100}
	for second := range int64(3) {
		recording(t, files, second)
	}
	s := NewSender(files, to, limit(1<<20))
	if err := s.Pass(t.Context()); err == nil {
		t.Fatal("a store that is away took something")
	}
	if st := s.State(); st.Files != 9 || st.Bytes == 0 || st.Failure != "away" || st.Sent != 0 || st.Oldest.Unix() != 1_700_000_000 {
		t.Errorf("%+v", st)
	}
	to.there = true
	if err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Files != 0 || st.Sent != 9 || st.Dropped != 0 || st.Failure != "" || !st.Oldest.IsZero() {
		t.Errorf("%+v", st)
	}
	// The newest recording first, and of each the row that says all is there last.
	var times []time.Time
	for i := 0; i < len(to.keys); i += 3 {
		times = append(times, store.Entry{Key: to.keys[i]}.At())
		if table := to.keys[i+2]; table[:len("v1/upload/")] != "v1/upload/" {
			t.Errorf("%s came last", table)
		}
	}
	if !slices.IsSortedFunc(times, func(a, b time.Time) int { return b.Compare(a) }) {
		t.Errorf("%v", times)
	}
	if left, _ := files.List(t.Context(), store.Version); len(left) != 0 {
		t.Errorf("%q", left)
	}
}

// A sender that is killed after a file was taken and before it was removed sends it
// again; nothing is lost and nothing twice in the store.
func TestASenderThatStopsHalfwayGoesOn(t *testing.T) {
	files := open(t)
	recording(t, files, 1)
	to := &away{there: true, left: 2}
	if err := NewSender(files, to, limit(1<<20)).Pass(t.Context()); err == nil {
		t.Fatal("it took more than two")
	}
	to.left = 100
	if err := NewSender(files, to, limit(1<<20)).Pass(t.Context()); err != nil || len(to.keys) != 3 {
		t.Errorf("%q, %v", to.keys, err)
	}
}

func TestWithoutRoomTheOldestGoAndAreCounted(t *testing.T) {
	files := open(t)
	for second := range int64(4) {
		recording(t, files, second)
	}
	all, err := files.Entries(store.Version)
	if err != nil || len(all) != 12 {
		t.Fatal(all, err)
	}
	var bytes int64
	for _, e := range all {
		bytes += e.Bytes
	}
	s := NewSender(files, &away{}, limit(bytes/2))
	_ = s.Pass(t.Context())
	left, _ := files.Entries(store.Version)
	if st := s.State(); st.Dropped != int64(12-len(left)) || st.Bytes > bytes/2 || len(left) == 0 {
		t.Errorf("%+v, %d left", st, len(left))
	}
	for _, e := range left {
		if e.At().Unix() < 1_700_000_002 {
			t.Errorf("%s stayed", e.Key)
		}
	}
}

func TestRunSendsWhatIsThereWhenItEnds(t *testing.T) {
	files, to := open(t), &away{there: true, left: 100}
	recording(t, files, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	NewSender(files, to, limit(1<<20)).Run(ctx)
	if len(to.keys) != 3 {
		t.Errorf("%q", to.keys)
	}
}
