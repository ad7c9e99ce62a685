// Package outbox keeps files on a node's disk until the fleet's store has taken them:
// a store that is away for a night loses nothing, and what does not fit is counted.
//
// Who has something to send writes it into the outbox's directory, which is a store
// itself, and is done. One Sender of the node empties it: the newest first, so that what
// is asked for tonight does not wait for what a night has left, and of one recording the
// files in their order, the table that says all is there last. A file that was sent is
// removed; a sender that ends between the two sends it again, which changes nothing,
// since keys have the content's hash. Above the limit the oldest files go.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Open returns the outbox in a directory, which is made if it does not exist, and is
// nobody else's to read.
func Open(directory string) (*store.Directory, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("making the outbox: %w", err)
	}
	return store.NewDirectory(directory)
}

// State is what an outbox holds, and what became of what it held, since the sender
// began.
type State struct {
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Oldest    time.Time `json:"oldest"` // of what waits; zero if nothing does
	Sent      int64     `json:"sent"`
	SentBytes int64     `json:"sent_bytes"`
	Dropped   int64     `json:"dropped"`           // files, for want of room
	Failure   string    `json:"failure,omitempty"` // of the last attempt
}

// Taker is what an outbox is emptied into: a store.
type Taker interface {
	Put(ctx context.Context, key string, content []byte) error
}

// Sender empties an outbox into a store.
type Sender struct {
	files *store.Directory
	to    Taker
	most  func() int64 // bytes

	mu    sync.Mutex // the sender's goroutine, and who asks for the state
	state State
}

// NewSender returns one for an outbox of at most as many bytes as most says each time.
func NewSender(files *store.Directory, to Taker, most func() int64) *Sender {
	return &Sender{files: files, to: to, most: most}
}

// State is how things stand.
func (s *Sender) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

const (
	look         = time.Second      // how often new files are looked for
	patience     = 10 * time.Second // of one file
	longestPause = time.Minute      // after failures in a row
)

// Run sends until the context is done, and then once more what is left, for as long as
// a file may take.
func (s *Sender) Run(ctx context.Context) {
	pause := look
	for ctx.Err() == nil {
		if err := s.Pass(ctx); err == nil {
			pause = look
		} else {
			pause = min(2*pause, longestPause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = s.Pass(last) // what it did not take waits on the disk
}

// Pass makes room, then sends what there is until the store does not take a file.
func (s *Sender) Pass(ctx context.Context) error {
	waiting, err := s.makeRoom(ctx)
	if err == nil {
		for len(waiting) > 0 && err == nil && ctx.Err() == nil {
			if err = s.send(ctx, waiting[0]); err == nil {
				waiting = waiting[1:]
				s.tell(waiting, nil)
			}
		}
	}
	s.tell(waiting, err)
	return err
}

// makeRoom removes the oldest files until the rest is below the limit, and returns the
// rest in the order in which it is to be sent.
func (s *Sender) makeRoom(ctx context.Context) (waiting []store.Entry, err error) {
	waiting, err = s.files.Entries(store.Version)
	if err != nil {
		return nil, fmt.Errorf("looking into the outbox: %w", err)
	}
	slices.SortFunc(waiting, inOrder)
	most, bytes := s.most(), int64(0)
	for i, e := range waiting {
		if bytes += e.Bytes; bytes <= most {
			continue
		}
		for _, old := range waiting[i:] {
			if err := s.files.Remove(ctx, old.Key); err != nil {
				return waiting[:i], err
			}
			s.mu.Lock()
			s.state.Dropped++
			s.mu.Unlock()
		}
		return waiting[:i], nil
	}
	return waiting, nil
}

// last is the table whose row says that the others of a recording are there.
const last = "upload"

// inOrder has the newest first, and within one time the table that comes last last.
func inOrder(a, b store.Entry) int {
	isLast := func(e store.Entry) int {
		if strings.HasPrefix(e.Key, store.Version+"/"+last+"/") {
			return 1
		}
		return 0
	}
	return cmp.Or(b.At().Compare(a.At()), cmp.Compare(isLast(a), isLast(b)), cmp.Compare(a.Key, b.Key))
}

func (s *Sender) send(ctx context.Context, e store.Entry) error {
	f, err := s.files.Get(ctx, e.Key)
	if err != nil {
		return fmt.Errorf("reading the outbox: %w", err)
	}
	content, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("reading the outbox: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.to.Put(limited, e.Key, content); err != nil {
		return err
	}
	s.mu.Lock()
	s.state.Sent, s.state.SentBytes = s.state.Sent+1, s.state.SentBytes+int64(len(content))
	s.mu.Unlock()
	return s.files.Remove(ctx, e.Key)
}

// tell brings the state up to date.
func (s *Sender) tell(waiting []store.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Files, s.state.Bytes, s.state.Oldest, s.state.Failure = int64(len(waiting)), 0, time.Time{}, ""
	for _, e := range waiting {
		s.state.Bytes += e.Bytes
	}
	if len(waiting) > 0 {
		s.state.Oldest = waiting[len(waiting)-1].At()
	}
	if err != nil {
		s.state.Failure = err.Error()
	}
}
