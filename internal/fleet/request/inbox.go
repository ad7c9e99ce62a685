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
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Prefix is where the requests of a job lie.
func Prefix(job string) string {
	return path.Dir(path.Dir(path.Dir(store.Partition{Table: "request", Job: job}.Key(nil)))) + "/"
}

// Put puts a request into the store, under a name that only holders of the key can make.
func Put(ctx context.Context, s store.Store, r Request, key []byte) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	name := store.Partition{Table: "request", Job: r.Job, Host: r.Host, At: time.Unix(0, r.Start)}.Key(text)
	name = strings.TrimSuffix(name, ".parquet")
	return s.Put(ctx, name+"-"+mark(name, key)+".json", text)
}

// mark is the end of a request's name. It says that a holder of the key has put a file
// there, so that of many files that anybody may have written the signed ones are read
// first. It is no signature of what is in the file: that has its own.
func mark(name string, key []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "name %s", name)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func marked(name string, key []byte) bool {
	name, ends := strings.CutSuffix(name, ".json")
	i := strings.LastIndexByte(name, '-')
	return ends && i >= 0 && hmac.Equal([]byte(name[i+1:]), []byte(mark(name[:i], key)))
}

// mostMarked and mostUnmarked bound how many requests are read at one time. Those
// without a mark are of agents before there was one, or of anybody.
const (
	mostMarked   = 100
	mostUnmarked = 50
)

// Inbox reads the requests of a job.
type Inbox struct {
	job   string
	key   []byte
	read  map[string]bool      // by their names in the store, of those that are due
	taken map[string]time.Time // when what was asked for begins, by nonce
}

// NewInbox returns that of a job.
func NewInbox(job string, key []byte) *Inbox {
	return &Inbox{job: job, key: key, read: map[string]bool{}, taken: map[string]time.Time{}}
}

// Ask puts a request of a host's into the store.
func (b *Inbox) Ask(ctx context.Context, s store.Store, host, reason string, start time.Time) error {
	return Put(ctx, s, New(b.job, host, reason, start, b.key), b.key)
}

// Refused is what a look at the requests has not taken.
type Refused struct {
	Files int64 // that no holder of the key has signed, or of another version
	Left  int64 // unread: there are too many without a mark
	Why   error // of one of the files
}

// Due are the requests of windows that begin after now, and soon. Each is returned once,
// under however many names it lies there: who writes into the store can copy it. One that
// was due before is never due again, unless the clock is put back.
func (b *Inbox) Due(ctx context.Context, s store.Store, now time.Time) (found []Request, refused Refused, err error) {
	first, last := now, now.Add(longestLead)
	days := []string{first.UTC().Format(time.DateOnly), last.UTC().Format(time.DateOnly)}
	var names []string
	for _, day := range slices.Compact(days) { // the days before have as many as were ever asked for
		there, err := s.List(ctx, Prefix(b.job)+"date="+day+"/")
		if err != nil {
			return nil, refused, err
		}
		names = append(names, there...)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		at := store.Entry{Key: name}.At()
		return !at.After(first) || !at.Before(last)
	})
	maps.DeleteFunc(b.read, func(name string, _ bool) bool {
		_, there := slices.BinarySearch(names, name)
		return !there
	})
	maps.DeleteFunc(b.taken, func(_ string, at time.Time) bool { return at.Before(now) })
	var sure, other []string
	for _, name := range names {
		switch {
		case b.read[name]:
		case marked(name, b.key):
			sure = append(sure, name)
		default:
			other = append(other, name)
		}
	}
	// By lot: who chooses names can not choose which are read.
	rand.Shuffle(len(other), func(i, k int) { other[i], other[k] = other[k], other[i] })
	refused.Left = int64(max(0, len(other)-mostUnmarked))
	for _, name := range slices.Concat(sure[:min(len(sure), mostMarked)], other[:min(len(other), mostUnmarked)]) {
		r, err := readRequest(ctx, s, name)
		if errors.Is(err, store.ErrAway) || ctx.Err() != nil {
			return found, refused, errors.Join(err, ctx.Err()) // and the next time again
		}
		b.read[name] = true
		if err == nil {
			err = r.Verify(b.key)
		}
		if err != nil {
			refused.Files, refused.Why = refused.Files+1, fmt.Errorf("request %s: %w", path.Base(name), err)
			continue
		}
		start := time.Unix(0, r.Start)
		_, again := b.taken[r.Nonce]
		if r.Job == b.job && !again && start.After(first) && start.Before(last) {
			b.taken[r.Nonce] = start
			found = append(found, r)
		}
	}
	return found, refused, nil
}

func readRequest(ctx context.Context, s store.Store, name string) (r Request, err error) {
	f, err := s.Get(ctx, name)
	if err != nil {
		return r, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostRequest+1))
	switch {
	case err != nil:
		return r, err
	case len(text) > mostRequest:
		return r, errors.New("it is too large for a request")
	}
	return r, json.Unmarshal(text, &r)
}
