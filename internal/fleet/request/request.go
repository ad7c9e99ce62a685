// Package request asks the workers of a job for a window, by a signed file in the store.
package request

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Request asks the workers of a job for a window that begins at the same time on all
// of them. It travels as a small file in the store, signed with the fleet's key: who
// can write into the store can not ask for captures with that alone.
type Request struct {
	Job    string `json:"job"`
	Host   string `json:"host"`   // who asks
	Reason string `json:"reason"` // slow, blocked, operator
	Start  int64  `json:"start_ns"`
	Nonce  string `json:"nonce"`
	Sign   string `json:"hmac"`
}

// Windows begin at multiples of startGrid by the wall clock, and not before peers that
// poll every Poll can have seen the request.
const (
	startGrid = 5 * time.Second
	Poll      = 2 * time.Second
	leastLead = 2*Poll + time.Second
)

// ErrSignature is returned for a request that no holder of the key has written.
var ErrSignature = errors.New("the request's signature is not that of this key")

// AlignedStart is when a window begins that is asked for now.
func AlignedStart(now time.Time) time.Time {
	return now.Add(leastLead + startGrid - 1).Truncate(startGrid)
}

// New makes a signed request.
func New(job, host, reason string, start time.Time, key []byte) Request {
	var nonce [12]byte
	rand.Read(nonce[:])
	r := Request{Job: job, Host: host, Reason: reason, Start: start.UnixNano(), Nonce: hex.EncodeToString(nonce[:])}
	r.Sign = hex.EncodeToString(r.mac(key))
	return r
}

// mac covers each field with its length, so that none can borrow from its neighbour.
func (r Request) mac(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, field := range []string{r.Job, r.Host, r.Reason, fmt.Sprint(r.Start), r.Nonce} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return h.Sum(nil)
}

// Verify returns ErrSignature unless somebody with the key made the request.
func (r Request) Verify(key []byte) error {
	sign, err := hex.DecodeString(r.Sign)
	if err != nil || !hmac.Equal(sign, r.mac(key)) {
		return ErrSignature
	}
	return nil
}

// Prefix is where the requests of a job lie.
func Prefix(job string) string {
	return path.Dir(path.Dir(path.Dir(store.Partition{Table: "request", Job: job}.Key(nil)))) + "/"
}

// Put puts a request into the store.
func Put(ctx context.Context, s store.Store, r Request) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	key := store.Partition{Table: "request", Job: r.Job, Host: r.Host, At: time.Unix(0, r.Start)}.Key(text)
	return s.Put(ctx, key[:len(key)-len(".parquet")]+".json", text)
}

// mostRequest bounds a request in bytes, mostRequests how many are looked at: anybody
// may have written them.
const (
	mostRequest  = 4096
	mostRequests = 1000
)

// Since reads those of a job that begin after a time, leaving out those in done.
// What is no request, or not signed, is told as an error and not read again.
func Since(ctx context.Context, s store.Store, job string, after time.Time, key []byte, done map[string]bool) (found []Request, bad error) {
	keys, err := s.List(ctx, Prefix(job))
	if err != nil {
		return nil, err
	}
	if len(keys) > mostRequests {
		bad = fmt.Errorf("%d requests in the store: only the last %d are read", len(keys), mostRequests)
		keys = keys[len(keys)-mostRequests:]
	}
	maps.DeleteFunc(done, func(k string, _ bool) bool {
		_, there := slices.BinarySearch(keys, k)
		return !there
	})
	for _, k := range keys {
		if done[k] {
			continue
		}
		r, err := readRequest(ctx, s, k)
		if errors.Is(err, store.ErrAway) {
			return found, err // and the next time again
		}
		done[k] = true
		if err == nil {
			err = r.Verify(key)
		}
		switch {
		case err != nil:
			bad = fmt.Errorf("request %s: %w", path.Base(k), err)
		case r.Job == job && r.Start > after.UnixNano() && r.Start < after.Add(time.Minute).UnixNano():
			found = append(found, r)
		}
	}
	return found, bad
}

func readRequest(ctx context.Context, s store.Store, key string) (r Request, err error) {
	f, err := s.Get(ctx, key)
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

// ReadKey reads the secret that requests are signed with: it must not be readable by all.
func ReadKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s may be read by others than its owner: chmod 600 it", path)
	}
	if info.Size() > mostRequest {
		return nil, fs.ErrInvalid
	}
	key, err := os.ReadFile(path)
	if key = bytes.TrimSpace(key); err == nil && len(key) < 16 {
		return nil, fmt.Errorf("%s holds %d bytes: a key has at least 16", path, len(key))
	}
	return key, err
}
