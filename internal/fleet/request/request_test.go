package request

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// a store that many can write into.
func shared(t testing.TB) *store.Directory {
	t.Helper()
	s, err := store.NewDirectory(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Who can write into the store can not ask for captures, nor change a request.
func TestOnlySignedRequestsOfTheJobCount(t *testing.T) {
	s, now := shared(t), time.Unix(1_800_000_000, 0)
	soon := now.Add(10 * time.Second)
	good := New("job", "a", "slow", soon, secret)
	moved := good
	moved.Start += int64(time.Second)
	// Fields that borrow from their neighbours have another signature.
	borrowed := New("job", "ex", "", soon, secret)
	borrowed.Host, borrowed.Reason = "e", "x"
	otherwise := New("other", "f", "slow", soon, secret)
	otherwise.Job = "job"
	newer := New("job", "g", "slow", soon, secret)
	newer.Version = Version + 1
	below := New("job", "g", "slow", soon, secret)
	below.Version = -1
	for _, c := range []struct {
		name    string
		request Request
		taken   bool
		why     error
	}{
		{"good", good, true, nil},
		{"begun", New("job", "b", "slow", now.Add(-time.Second), secret), false, nil},
		{"far", New("job", "c", "slow", now.Add(time.Hour), secret), false, nil},
		{"another key", New("job", "d", "slow", soon, []byte("another secret, that is as long")), false, ErrSignature},
		{"moved", moved, false, ErrSignature},
		{"borrowed", borrowed, false, ErrSignature},
		{"renamed", otherwise, false, ErrSignature},
		{"newer version", newer, false, ErrVersion},
		{"no version", below, false, ErrVersion},
	} {
		s, inbox := shared(t), NewInbox("job", secret)
		if err := Put(t.Context(), s, c.request, secret); err != nil {
			t.Fatal(err)
		}
		found, refused, err := inbox.Due(t.Context(), s, now)
		if err != nil || len(found) != count(c.taken) || c.taken && found[0] != c.request || refused.Files != int64(count(c.why != nil)) ||
			!errors.Is(refused.Why, c.why) {
			t.Errorf("%s: %+v, %+v, %v", c.name, found, refused, err)
		}
		if again, refused, err := inbox.Due(t.Context(), s, now); len(again) != 0 || refused.Files != 0 || err != nil {
			t.Errorf("%s is read twice: %v, %v, %v", c.name, again, refused, err)
		}
	}
	inbox := NewInbox("job", secret)
	if err := s.Put(t.Context(), plain(0, now), []byte(strings.Repeat("{", 1<<20))); err != nil {
		t.Fatal(err)
	}
	if found, refused, err := inbox.Due(t.Context(), s, now); len(found) != 0 || refused.Why == nil || !strings.Contains(refused.Why.Error(),
		"too large") || err != nil {
		t.Error(found, refused, err)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// plain is the name of a request that is due, as an agent without marks makes it, or
// anybody.
func plain(n int, now time.Time) string {
	p := store.Partition{Table: "request", Job: "job", Host: fmt.Sprintf("host-%d", n), At: now.Add(10 * time.Second)}
	return strings.TrimSuffix(p.Key([]byte{byte(n), byte(n >> 8)}), "parquet") + "json"
}

// Agents of the version before wrote no version and no mark, and read what is written now.
func TestTheVersionBeforeIsTaken(t *testing.T) {
	s, now := shared(t), time.Unix(1_800_000_000, 0)
	old := New("job", "a", "slow", now.Add(10*time.Second), secret)
	old.Version = 0
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "version") {
		t.Fatalf("%s", text)
	}
	if err := s.Put(t.Context(), plain(1, now), text); err != nil {
		t.Fatal(err)
	}
	found, refused, err := NewInbox("job", secret).Due(t.Context(), s, now)
	if len(found) != 1 || found[0] != old || refused.Files != 0 || err != nil {
		t.Errorf("%+v, %+v, %v", found, refused, err)
	}
	// The signature that such an agent expects, word for word.
	current := New("job", "a", "slow", now.Add(10*time.Second), secret)
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "3:job1:a4:slow%d:%d%d:%s", len(fmt.Sprint(current.Start)), current.Start, len(current.Nonce), current.Nonce)
	if current.Sign != hex.EncodeToString(h.Sum(nil)) {
		t.Error("agents of the version before would refuse what is signed now")
	}
}

// A signed request that is copied to other names, or read again after a restart, asks for
// no second window.
func TestARequestThatIsReplayedAsksForNothing(t *testing.T) {
	s, now := shared(t), time.Unix(1_800_000_000, 0)
	start := now.Add(10 * time.Second)
	if err := Put(t.Context(), s, New("job", "a", "slow", start, secret), secret); err != nil {
		t.Fatal(err)
	}
	inbox := NewInbox("job", secret)
	if found, _, err := inbox.Due(t.Context(), s, now); len(found) != 1 || err != nil {
		t.Fatal(found, err)
	}
	keys, err := s.List(t.Context(), Prefix("job"))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	f, err := s.Get(t.Context(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	copied := store.Partition{Table: "request", Job: "job", Host: "z", At: start.Add(20 * time.Second)}.Key(text)
	for _, name := range []string{plain(1, now), plain(2, now), strings.TrimSuffix(copied, "parquet") + "json"} {
		if err := s.Put(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
	}
	if found, _, err := inbox.Due(t.Context(), s, now); len(found) != 0 || err != nil {
		t.Errorf("copies ask again: %v, %v", found, err)
	}
	if found, _, err := NewInbox("job", secret).Due(t.Context(), s, now); len(found) != 1 || err != nil {
		t.Errorf("an agent that begins again before the window does sees its copies as %d requests, %v", len(found), err)
	}
	for _, later := range []time.Duration{10 * time.Second, 11 * time.Second, time.Hour, 48 * time.Hour} {
		if found, _, err := NewInbox("job", secret).Due(t.Context(), s, now.Add(later)); len(found) != 0 || err != nil {
			t.Errorf("%v later, after a restart: %v, %v", later, found, err)
		}
	}
}

// Many files that nobody has signed, whose names sort before and after a genuine one's
// and are of its time, do not push it out, and few of them are read.
func TestAFloodDoesNotPushOutAGenuineRequest(t *testing.T) {
	s, now := shared(t), time.Unix(1_800_000_000, 0)
	const flood = 3000
	genuine := New("job", "host-15", "slow", now.Add(10*time.Second), secret)
	forged := New("job", "x", "slow", now.Add(10*time.Second), []byte("not the fleet's key at all"))
	for i := range flood {
		text, err := json.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		name := plain(i, now)
		if i%2 == 0 { // with a mark, of another key
			name = strings.TrimSuffix(name, ".json")
			name += "-" + mark(name, []byte("not the fleet's key at all")) + ".json"
		}
		if err := s.Put(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := Put(t.Context(), s, genuine, secret); err != nil {
		t.Fatal(err)
	}
	inbox := NewInbox("job", secret)
	found, refused, err := inbox.Due(t.Context(), s, now)
	if len(found) != 1 || found[0] != genuine || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if refused.Files != mostUnmarked || refused.Left != flood-mostUnmarked || !errors.Is(refused.Why, ErrSignature) {
		t.Errorf("%+v", refused)
	}
	if found, refused, err = inbox.Due(t.Context(), s, now); len(found) != 0 || refused.Left != flood-2*mostUnmarked || err != nil {
		t.Errorf("the second time: %v, %+v, %v", found, refused, err)
	}
	// The mark of a genuine name serves no other.
	keys, err := s.List(t.Context(), Prefix("job"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, k := range keys {
		if marked(k, secret) {
			n++
			if marked(strings.Replace(k, "host-15", "host-16", 1), secret) {
				t.Error("a mark is good under another name")
			}
		}
	}
	if n != 1 {
		t.Errorf("%d marked", n)
	}
}

// A listing that takes too long ends with the patience of who asks.
func TestAFloodTakesNoMoreThanItsTime(t *testing.T) {
	s := shared(t)
	if err := Put(t.Context(), s, New("job", "a", "slow", time.Unix(1_800_000_010, 0), secret), secret); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if found, _, err := NewInbox("job", secret).Due(over, s, time.Unix(1_800_000_000, 0)); len(found) != 0 ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", found, err)
	}
}

// Around midnight a request lies in the next day's partition.
func TestARequestForAfterMidnightIsFound(t *testing.T) {
	s := shared(t)
	now := time.Date(2027, 1, 1, 23, 59, 55, 0, time.UTC)
	if err := Put(t.Context(), s, New("job", "a", "slow", now.Add(10*time.Second), secret), secret); err != nil {
		t.Fatal(err)
	}
	if found, _, err := NewInbox("job", secret).Due(t.Context(), s, now); len(found) != 1 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
