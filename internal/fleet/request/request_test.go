package request

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

var secret = []byte("a secret of the fleet's own")

func TestWindowsOfPeersBeginTogetherAndNotAtOnce(t *testing.T) {
	base := time.Unix(1_700_000_000, 0)
	for ms := 0; ms < 20_000; ms += 137 {
		now := base.Add(time.Duration(ms) * time.Millisecond)
		start := AlignedStart(now)
		if start.UnixNano()%int64(startGrid) != 0 || start.Sub(now) < leastLead || start.Sub(now) > leastLead+startGrid {
			t.Errorf("asked %v, begins %v", now, start)
		}
	}
}

// Who can write into the store can not ask for captures, nor change a request.
func TestOnlySignedRequestsOfTheJobCount(t *testing.T) {
	ctx := t.Context()
	s, err := store.NewDirectory(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	good := New("job", "a", "slow", now.Add(10*time.Second), secret)
	late := New("job", "b", "slow", now.Add(-time.Second), secret)
	far := New("job", "c", "slow", now.Add(time.Hour), secret)
	forged := New("job", "d", "slow", now.Add(10*time.Second), []byte("another secret, that is as long"))
	moved := good
	moved.Start += int64(time.Second)
	// Fields that borrow from their neighbours have another signature.
	borrowed := New("job", "ex", "", now.Add(10*time.Second), secret)
	borrowed.Host, borrowed.Reason = "e", "x"
	other := New("other", "f", "slow", now.Add(10*time.Second), secret)
	done := map[string]bool{}
	refused := 0
	var found []Request
	for _, r := range []Request{good, late, far, forged, moved, borrowed, other} {
		if err := Put(ctx, s, r); err != nil {
			t.Fatal(err)
		}
		more, err := Since(ctx, s, "job", now, secret, done)
		found = append(found, more...)
		if errors.Is(err, ErrSignature) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if len(found) != 1 || found[0] != good || refused != 3 {
		t.Errorf("%d refused, %+v", refused, found)
	}
	key := Prefix("job") + "date=2026-01-01/host=x/1-1.json"
	if err := s.Put(ctx, key, []byte(strings.Repeat("{", 1<<20))); err != nil {
		t.Fatal(err)
	}
	if _, err := Since(ctx, s, "job", now, secret, done); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
	if again, err := Since(ctx, s, "job", now, secret, done); len(again) != 0 || err != nil {
		t.Errorf("requests are read twice: %v, %v", again, err)
	}
}
