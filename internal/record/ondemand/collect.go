package ondemand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

var (
	// ErrNoTrace: the process was asked and wrote nothing in time.
	ErrNoTrace = errors.New("it wrote no trace")
	// ErrExited: the process exited before it had written its trace.
	ErrExited = errors.New("it exited before its trace was written")
)

const (
	// looking is how often the file is looked at, quiet how many looks in a row must find it of the same size.
	looking = 100 * time.Millisecond
	quiet   = 5
)

// copying bounds the time that the copy of a trace takes.
const copying = time.Minute

// collect waits until the trace is whole or a time has come, and copies it to where only we can write.
func (r *request) collect(ctx context.Context, until time.Time, most int64) (path string, err error) {
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := r.wait(wait, most); err != nil {
		return "", err
	}
	ctx, cancel = context.WithTimeout(ctx, copying)
	defer cancel()
	in, err := r.place.Open(r.fileName(), most)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp("", "ebpfprof-trace-*.json") // 0600
	if err != nil {
		return "", err
	}
	n, err := io.Copy(out, io.LimitReader(ended{ctx, in}, most+1))
	err = errors.Join(err, out.Close())
	if err == nil && n > most {
		err = fmt.Errorf("its trace is %w: it grew beyond %d bytes while it was read", process.ErrTooLarge, most)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(out.Name()))
	}
	return out.Name(), nil
}

// wait waits for a file that looks complete: it ends as a document ends and has not grown for a while. One that stays
// incomplete until the deadline is taken as it is, if there is anything in it.
func (r *request) wait(ctx context.Context, most int64) error {
	ticker := time.NewTicker(looking)
	defer ticker.Stop()
	last, same := int64(-1), 0
	for {
		size, err := r.place.Size(r.fileName())
		switch {
		case err == nil && size > most:
			return fmt.Errorf("its trace is %w: more than %d bytes", process.ErrTooLarge, most)
		case err == nil && size == last && size > 0:
			if same++; same >= quiet && r.ends(most) {
				return nil
			}
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		default:
			last, same = size, 0
			if err != nil {
				last = -1
			}
		}
		if same == 0 && !r.process.Alive() && last <= 0 {
			return ErrExited
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if last > 0 {
				return nil
			}
			return ErrNoTrace
		}
	}
}

// ends reports whether the file ends as a document of JSON does.
func (r *request) ends(most int64) bool {
	f, err := r.place.Open(r.fileName(), most)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	tail := make([]byte, min(info.Size(), 64))
	n, _ := f.ReadAt(tail, info.Size()-int64(len(tail)))
	return bytes.HasSuffix(bytes.TrimSpace(tail[:n]), []byte("}"))
}

// ended is a reader that stops when a context ends.
type ended struct {
	ctx context.Context
	in  io.Reader
}

func (e ended) Read(b []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.in.Read(b)
}
