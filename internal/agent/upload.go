package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// outboxName is the directory of the spool in which patterns wait for the store.
const outboxName = "outbox"

// outbox is where workers write what is for the store, and the supervisor sends it from.
func (c *Config) outbox() (*store.Directory, error) {
	return outbox.Open(filepath.Join(c.Spool, outboxName))
}

// reached is the store of the configuration as it is now. It is opened when something is
// put, and again after that failed: an agent starts without its store, too.
type reached struct {
	location func() string

	mu   sync.Mutex // the sender's goroutine, and a worker's
	at   string
	open store.Store
}

func (r *reached) get() (store.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.location(); r.open == nil || r.at != at {
		s, err := store.Create(at)
		if err != nil {
			return nil, err
		}
		r.open, r.at = s, at
	}
	return r.open, nil
}

// Put implements outbox.Taker.
func (r *reached) Put(ctx context.Context, key string, content []byte) error {
	s, err := r.get()
	if err != nil {
		return err
	}
	return s.Put(ctx, key, content)
}

// sending empties the outbox until the context is done, and logs when where it goes goes
// away and comes back.
func sending(ctx context.Context, s *outbox.Sender, log *slog.Logger, where, what string, also func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	failure := ""
	for {
		select {
		case <-done:
			also()
			if left := s.State(); left.Files > 0 {
				log.Warn(what+" wait on this node for "+where, "files", left.Files, "bytes", left.Bytes, "error", left.Failure)
			}
			return
		case <-look.C:
		}
		also()
		switch now := s.State(); {
		case now.Failure != "" && failure == "":
			log.Error(where+" takes nothing; "+what+" wait on this node", "files", now.Files, "bytes", now.Bytes, "error", now.Failure)
			failure = now.Failure
		case now.Failure == "" && failure != "":
			log.Info(where+" takes "+what+" again", "files", now.Files)
			failure = ""
		}
	}
}
