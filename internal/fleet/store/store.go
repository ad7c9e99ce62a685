// Package store keeps what the workers of a fleet send: immutable Parquet files under
// keys that sort by job, day and host. A directory is a store; so is a bucket.
//
// A key is v1/<table>/job=…/date=YYYY-MM-DD/host=…/<time>-<hash>.parquet. The hash is
// the content's, so that a file that is put twice is there once. Job and host are
// escaped in keys, since a job chooses its own name; the columns have them as they are. What
// was merged lies in v1/<table>/job=…/date=…: package manifest says what counts then.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset/manifest"
)

// Version is the first part of every key.
const Version = "v1"

// ErrNoStore is returned for a directory that holds no store.
var ErrNoStore = errors.New("not a store of patterns")

// ErrNothingYet is an ErrNoStore, of a place that is there and empty: a store to be.
var ErrNothingYet = fmt.Errorf("%w: nothing has been uploaded yet", ErrNoStore)

// ErrTaken is returned by Create for a key that is there already.
var ErrTaken = errors.New("taken")

// Store keeps files. Put of a key that is there already changes nothing.
type Store interface {
	Put(ctx context.Context, key string, content []byte) error
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List returns the keys below a prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	String() string
}

// Partition is where a file belongs.
type Partition struct {
	Table string
	Job   string
	Host  string
	At    time.Time // of its first row
}

// Key is a file's, by what is in it.
func (p Partition) Key(content []byte) string {
	sum := sha256.Sum256(content)
	at := p.At.UTC()
	return path.Join(Version, p.Table, "job="+escape(p.Job), "date="+at.Format(time.DateOnly), "host="+escape(p.Host),
		at.Format(manifest.KeyTime)+"-"+hex.EncodeToString(sum[:8])+".parquet")
}

// longestName is what a file system takes as one name, with room for "job=".
const longestName = 200

// escape makes one path element of any text: a name that is too long keeps its
// beginning and a hash of the whole.
func escape(name string) string {
	name = readable(name)
	if name == "" {
		name = "unknown"
	}
	e := strings.NewReplacer(".", "%2E", "=", "%3D", "*", "%2A", "'", "%27").Replace(url.PathEscape(name))
	if len(e) <= longestName {
		return e
	}
	sum := sha256.Sum256([]byte(name))
	e = e[:longestName-20]
	if i := strings.LastIndexByte(e, '%'); i > len(e)-3 {
		e = e[:i]
	}
	return e + "-" + hex.EncodeToString(sum[:8])
}

// mostText bounds a text in the store, in bytes. Readers take a file whose footer has a
// text of megabytes for damaged.
const mostText = 16 << 10

// readable is a text, or its beginning, in which bytes that are no UTF-8 are written as
// \xff. Jobs and functions may be called anything, and one such name would keep engines
// from reading the store.
func readable(text string) string {
	if len(text) > mostText {
		end := mostText
		for end > mostText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return b.String()
}

// Encode writes rows as one Parquet file.
func Encode[T any](rows []T) ([]byte, error) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Zstd))
	if _, err := w.Write(rows); err != nil {
		return nil, fmt.Errorf("encoding rows: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encoding rows: %w", err)
	}
	return b.Bytes(), nil
}

// put encodes rows and puts them where they belong.
func put[T any](ctx context.Context, s Store, p Partition, rows []T) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	content, err := Encode(rows)
	if err != nil {
		return 0, err
	}
	return len(content), s.Put(ctx, p.Key(content), content)
}
