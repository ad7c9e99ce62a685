// Package request asks the workers of a job for a window, by a signed file in the store.
package request

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Request asks the workers of a job for a window that begins at the same time on all
// of them. It travels as a small file in the store, signed with the fleet's key: who
// can write into the store can not ask for captures with that alone.
type Request struct {
	Version int    `json:"version,omitempty"` // 0 in those of agents before there were versions
	Job     string `json:"job"`
	Host    string `json:"host"`   // who asks
	Reason  string `json:"reason"` // slow, blocked, operator
	Start   int64  `json:"start_ns"`
	Nonce   string `json:"nonce"`
	Sign    string `json:"hmac"`
}

// Version is that of the requests that are made here. What agents before it wrote is the
// same but for the number, which the signature does not cover, so that either takes the
// other's. A later version's must: a request would else be turned into one of this.
const Version = 1

// Windows begin at multiples of startGrid by the wall clock, and not before peers that
// poll every Poll can have seen the request; longestLead is how far ahead a request may
// ask for one.
const (
	startGrid   = 5 * time.Second
	Poll        = 2 * time.Second
	leastLead   = 2*Poll + time.Second
	longestLead = time.Minute
)

// ErrSignature is returned for a request that no holder of the key has written.
var ErrSignature = errors.New("the request's signature is not that of this key")

// ErrVersion is returned for a request of a version that is not known here.
var ErrVersion = errors.New("the request's version is not known here: update this agent")

// AlignedStart is when a window begins that is asked for now.
func AlignedStart(now time.Time) time.Time {
	return now.Add(leastLead + startGrid - 1).Truncate(startGrid)
}

// New makes a signed request.
func New(job, host, reason string, start time.Time, key []byte) Request {
	var nonce [12]byte
	rand.Read(nonce[:])
	r := Request{Version: Version, Job: job, Host: host, Reason: reason, Start: start.UnixNano(), Nonce: hex.EncodeToString(nonce[:])}
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

// Verify returns ErrVersion for a request of a later version, and ErrSignature unless
// somebody with the key made it.
func (r Request) Verify(key []byte) error {
	if r.Version < 0 || r.Version > Version {
		return fmt.Errorf("version %d: %w", r.Version, ErrVersion)
	}
	sign, err := hex.DecodeString(r.Sign)
	if err != nil || !hmac.Equal(sign, r.mac(key)) {
		return ErrSignature
	}
	return nil
}

// mostRequest bounds a request, and a key, in bytes.
const mostRequest = 4096

// ReadKey reads the secret that requests are signed with: it must not be readable by all.
func ReadKey(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s belongs to user %d, who knows the key: chown it to root", path, stat.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s may be read by others than its owner: chmod 600 it", path)
	}
	if info.Size() > mostRequest {
		return nil, fs.ErrInvalid
	}
	key, err := io.ReadAll(io.LimitReader(file, mostRequest))
	if key = bytes.TrimSpace(key); err == nil && len(key) < 16 {
		return nil, fmt.Errorf("%s holds %d bytes: a key has at least 16", path, len(key))
	}
	return key, err
}
