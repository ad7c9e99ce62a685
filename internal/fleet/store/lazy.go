package store

import (
	"context"
	"sync"
)

// Lazy is the store at a location that may change. It is opened when something is put, and
// again after that failed: an agent starts without its store, too.
type Lazy struct {
	Location func() string

	mu   sync.Mutex // two goroutines of an agent may use one
	at   string
	open Store
}

// Get returns the store, opened.
func (l *Lazy) Get() (Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.Location(); l.open == nil || l.at != at {
		s, err := Create(at)
		if err != nil {
			return nil, err
		}
		l.open, l.at = s, at
	}
	return l.open, nil
}

// Put writes a file under a key.
func (l *Lazy) Put(ctx context.Context, key string, content []byte) error {
	s, err := l.Get()
	if err != nil {
		return err
	}
	return s.Put(ctx, key, content)
}
