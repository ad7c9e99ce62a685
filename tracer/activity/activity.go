// Package activity takes over what a library inside a job hands over of what a device did: chunks of bytes, one each time
// that the library calls an empty function, on which the package puts a probe. It does not look into them.
//
// The package is no part of the public API: it may change with any version.
package activity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// function is the library's empty one.
const function = "ebpfprof_activities"

// Taken counts chunks by what became of them.
type Taken struct {
	Written    uint64
	OverLimit  uint64 // not written, since so many bytes were
	Full       uint64 // the kernel's buffer had no room: lost
	Unreadable uint64 // nothing was at the address
	Length     uint64 // no chunk is so long
}

// Taker takes over until it is stopped.
type Taker struct {
	collection *ebpf.Collection
	links      []link.Link
	ring       *ringbuf.Reader
	done       chan error

	to     *bufio.Writer
	left   int64
	taken  Taken
	buffer []byte
}

// Start puts the probe on the library in a file, in all processes that map it or will, and writes what they hand over,
// as event.ActivityChunk.ReadNext reads it, limit bytes at the most.
func Start(library string, to io.Writer, limit int64) (*Taker, error) {
	t := &Taker{to: bufio.NewWriterSize(to, 1<<20), left: limit, done: make(chan error, 1)}
	if err := t.attach(library); err != nil {
		t.close()
		return nil, err
	}
	go func() { t.done <- t.read() }()
	return t, nil
}

// attach loads the program and puts the probe in. After an error close releases what is there.
func (t *Taker) attach(library string) error {
	sites, err := uprobe.Symbols(library, function)
	if err != nil {
		return err
	}
	spec, err := bpf.LoadActivities()
	if err != nil {
		return fmt.Errorf("reading the program of activities: %w", err)
	}
	bpf.Fit(spec)
	if t.collection, err = bpf.LoadAlone(spec); err != nil {
		return fmt.Errorf("loading the program of activities: %w", err)
	}
	if t.ring, err = ringbuf.NewReader(t.collection.Maps[bpf.ActivitiesMapActivityRing]); err != nil {
		return fmt.Errorf("opening the buffer of activities: %w", err)
	}
	file, err := uprobe.Open(library)
	if err != nil {
		return fmt.Errorf("opening %s: %w", library, err)
	}
	t.links, err = uprobe.Attach(file, t.collection.Programs[bpf.ActivitiesProgTakeActivities], sites, uprobe.How{})
	if err != nil {
		return fmt.Errorf("probing %s: %w", library, err)
	}
	return nil
}

func (t *Taker) read() error {
	var record ringbuf.Record
	for {
		switch err := t.ring.ReadInto(&record); {
		case errors.Is(err, ringbuf.ErrFlushed), errors.Is(err, os.ErrClosed):
			return t.to.Flush()
		case err != nil:
			return errors.Join(fmt.Errorf("reading activities: %w", err), t.to.Flush())
		}
		if err := t.write(record.RawSample); err != nil {
			return fmt.Errorf("writing activities: %w", err)
		}
	}
}

func (t *Taker) write(sample []byte) error {
	if len(sample) < int(unsafe.Sizeof(bpf.ActivitiesActivities{})) {
		t.taken.Length++
		return nil
	}
	a := (*bpf.ActivitiesActivities)(unsafe.Pointer(&sample[0]))
	c := event.ActivityChunk{TSNS: int64(a.TsNs), PID: int32(a.Tgid), Bytes: a.Bytes[:min(a.Length, uint32(len(a.Bytes)))]}
	t.buffer = c.AppendTo(t.buffer[:0])
	if t.left -= int64(len(t.buffer)); t.left < 0 {
		t.taken.OverLimit++
		return nil
	}
	t.taken.Written++
	_, err := t.to.Write(t.buffer)
	return err
}

// Stop takes the probe out, writes what is under way and says what became of all.
func (t *Taker) Stop() (Taken, error) {
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	t.links = nil
	errs = append(errs, t.ring.Flush(), <-t.done)
	counts := t.collection.Maps[bpf.ActivitiesMapActivityCounts]
	for what, n := range map[bpf.ActivitiesActivityCount]*uint64{
		bpf.ActivitiesActivityCountACTIVITY_LENGTH: &t.taken.Length, bpf.ActivitiesActivityCountACTIVITY_FULL: &t.taken.Full,
		bpf.ActivitiesActivityCountACTIVITY_UNREADABLE: &t.taken.Unreadable,
	} {
		errs = append(errs, counts.Lookup(uint32(what), n))
	}
	t.close()
	return t.taken, errors.Join(errs...)
}

func (t *Taker) close() {
	for _, l := range t.links {
		l.Close()
	}
	if t.ring != nil {
		t.ring.Close()
	}
	if t.collection != nil {
		t.collection.Close()
	}
}
