// Package output writes the events of a recording into a dataset: a
// directory of Parquet tables, described in docs/schema.md.
//
// A file of the dataset is complete the moment it can be seen: it is written
// under a hidden name, closed, checked, flushed to disk and renamed. Tables
// that grow get a new file at each rotation; small ones are rewritten whole, but
// for the rows of what has ended, which get a new file too.
// So a tracer that is killed loses what came after the last rotation, and
// never leaves a file that a reader chokes on.
package output

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var (
	// ErrNotEmpty is returned by Create for a directory that has something in it.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrClosed is returned for events after Close.
	ErrClosed = errors.New("dataset is closed")
	// ErrFull is wrapped by the error that a full disk or an exhausted quota causes.
	ErrFull = errors.New("no space left")

	// ErrNotOurs is wrapped by Create's error for a directory that another user can change.
	ErrNotOurs = directory.ErrNotOurs

	errNoSession = errors.New("dataset has no session yet")
)

// RotateEvery is how often the growing tables get a new file unless Options say
// otherwise: what a tracer that is killed loses at the most.
const RotateEvery = 60 * time.Second

// Options are for Create. The zero value is what schema.md says.
type Options struct {
	// RotateEvery is how often the growing tables get a new file: 60 s when 0.
	RotateEvery time.Duration
	// RotateShare lets them be rarer in a long recording: they are at least this share of its length so far apart, up to
	// 60 s; 0 is RotateEvery throughout.
	RotateShare float64
	// RotateBytes is the size at which they get one sooner: 64 MB when 0.
	RotateBytes int64
	// Access says who may read the dataset. When its Mode is 0: nobody but its owner,
	// who is this process's user, or the one who called sudo.
	Access Access
}

// Access is the mode, owner and group of what is written.
type Access = directory.Access

// PrivateAccess is what a dataset has unless Options say otherwise.
func PrivateAccess() Access { return directory.Invoker() }

// Dataset is a dataset being written. It implements event.Sink; its methods
// may be called from several goroutines.
//
// What a Span's Detail and the pointers of an event point at must not change
// after the call; the slices themselves may be used again.
//
// The first error stays: every later call returns it, and nothing more is
// written except, at Close, the small tables.
type Dataset struct {
	path    string
	dir     *directory.Directory
	options Options
	writer  *writer
	stop    chan struct{} // ends the timer

	mu      sync.Mutex // guards what follows
	session string
	closed  bool
	spans   *growing[event.Span]
	memory  *growing[event.Memory]
	counter *growing[event.Counter]
	slices  *growing[event.Slice]
	flows   *growing[event.Flow]
	io      *growing[event.IO]
	short   *growing[event.ShortProcess]
	merged  *growing[event.MergedTrace]
	warning *growing[event.Warning]
	samples *growing[event.Sample]
	stacks  *growing[event.Stack]

	sessions  *small[string, event.Recording]
	fields    *small[int, schemaField]
	processes *small[int64, event.Process]
	threads   *small[threadKey, event.Thread]
	libraries *small[libraryKey, event.Library]
	probes    *small[probeKey, event.Probe]

	open          *small[int, openCall]
	communicators *small[int, event.Communicator]
	still         *small[int, event.StillThread]
	standing      int // threads that stood still when they were looked at last
	stillSeen     int64
	openStacks    time.Time // when stacks were published for the sake of open calls
}

var _ event.Sink = (*Dataset)(nil)

// Create makes a new dataset in dir, which must be empty or not exist yet
// (ErrNotEmpty), and in which no other user may write (ErrNotOurs). Files appear
// with the call of Session.
func Create(dir string, options Options) (*Dataset, error) {
	if options.RotateEvery <= 0 {
		options.RotateEvery = RotateEvery
	}
	if options.RotateBytes <= 0 {
		options.RotateBytes = 64_000_000
	}
	if options.Access.Mode == 0 {
		options.Access = directory.Invoker()
	}
	in, err := makeEmptyDirectory(dir, options.Access)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(in, options.RotateBytes)
	if err != nil {
		return nil, errors.Join(err, in.Unmake())
	}
	d := &Dataset{
		path: dir, dir: in, options: options, writer: w, stop: make(chan struct{}),
		spans:     newGrowing(w, spanTable),
		samples:   newGrowing(w, sampleTable),
		stacks:    newGrowing(w, stackTable),
		memory:    newGrowing(w, memoryTable),
		counter:   newGrowing(w, counterTable),
		slices:    newGrowing(w, sliceTable),
		flows:     newGrowing(w, flowTable),
		io:        newGrowing(w, ioTable),
		short:     newGrowing(w, shortProcessTable),
		merged:    newGrowing(w, mergedTraceTable),
		warning:   newGrowing(w, warningTable),
		sessions:  newSmall(w, sessionTable, func(r event.Recording) string { return r.ID }, nil),
		fields:    newSmall[int](w, schemaFieldTable, nil, nil),
		processes: newSmall(w, processTable, func(p event.Process) int64 { return p.ID }, processEnded),
		threads:   newSmall(w, threadTable, keyOfThread, threadEnded),
		libraries: newSmall(w, libraryTable, keyOfLibrary, libraryEnded),
		probes:    newSmall(w, probeTable, keyOfProbe, probeGone),

		open:          newSmall[int](w, openCallTable, nil, nil),
		communicators: newSmall[int](w, communicatorTable, nil, nil),
		still:         newSmall[int](w, stillThreadTable, nil, nil),
	}
	go w.run()
	go d.rotateOnTime()
	return d, nil
}

func makeEmptyDirectory(path string, access Access) (*directory.Directory, error) {
	dir, err := directory.Make(path, access)
	if err != nil {
		return nil, fmt.Errorf("creating dataset: %w", err)
	}
	names, err := dir.Names()
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("cannot write a dataset into %s: %w (it has %s in it): choose another or empty it", path, ErrNotEmpty, names[0])
	}
	if err != nil {
		return nil, errors.Join(err, dir.Unmake())
	}
	return dir, nil
}

// Dir is the dataset's directory.
func (d *Dataset) Dir() string { return d.path }

// fileName is what a session id must look like to be part of a file's name.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// Session describes the recording; it comes before all events, and again with
// EndedNS set when the recording ends. After the first call the dataset is made
// readable: empty tables, their schema, the session. That takes some flushes to
// disk, which the caller, with probes already in, does not wait for.
func (d *Dataset) Session(r event.Recording) error {
	if err := d.begin(r); err != nil {
		return err
	}
	if first := d.sessions.put(r); !first {
		return d.writer.failure()
	}
	d.fields.replace(schemaFields())
	return d.writer.start(func() error {
		if err := d.writer.writeSchemaFiles(); err != nil {
			return err
		}
		return d.writer.publishSmall()
	})
}

func (d *Dataset) begin(r event.Recording) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return ErrClosed
	case d.session != "" && d.session != r.ID:
		return fmt.Errorf("session %s in the dataset of session %s", r.ID, d.session)
	case !fileName.MatchString(r.ID):
		return fmt.Errorf("session id %q cannot name a file: letters, digits, '.', '_' and '-' only", r.ID)
	}
	d.session = r.ID
	d.writer.setSession(r)
	return nil
}

// Write implements event.Sink: it adds rows to the tables that grow, and adds to or replaces
// those of the small tables: processes that are known by their id, threads by pid, tid and
// start, libraries by process, path and place, probes by process, function, kind and site;
// what is open it replaces as a whole. Each stack comes once in a session; its frames must
// not change after the call.
//
// It returns before the rows are on disk. The first process is written at once, so that even
// a short recording says what it is of, and what is open soon.
func (d *Dataset) Write(b *event.Batch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.slices.add(b.Slices)
	d.stacks.add(b.Stacks)
	d.samples.add(b.Samples)
	d.io.add(b.IO)
	d.short.add(b.ShortProcesses)
	d.spans.add(b.Spans)
	d.memory.add(b.Memory)
	d.flows.add(b.Flows)
	d.counter.add(b.Counters)
	d.merged.add(b.MergedTraces)
	d.warning.add(b.Warnings)
	d.threads.putAll(b.Threads)
	d.libraries.putAll(b.Libraries)
	d.probes.putAll(b.Probes)
	if first := d.processes.putAll(b.Processes); first {
		if err := d.writer.start(d.writer.publishSmall); err != nil {
			return err
		}
	}
	for i := range b.OpenCalls {
		if err := d.replaceOpen(&b.OpenCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dataset) usable() error {
	switch {
	case d.closed:
		return ErrClosed
	case d.session == "":
		return errNoSession
	}
	return d.writer.failure()
}

// Rotate closes the files of the growing tables and rewrites the small ones:
// when it returns, everything so far is on disk and readable.
func (d *Dataset) Rotate() error {
	if err := d.flush(); err != nil {
		return err
	}
	return d.writer.do(d.writer.publish)
}

// flush hands all buffered rows to the writer.
func (d *Dataset) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.spans.flush()
	d.stacks.flush()
	d.samples.flush()
	d.memory.flush()
	d.counter.flush()
	d.slices.flush()
	d.flows.flush()
	d.io.flush()
	d.short.flush()
	d.merged.flush()
	d.warning.flush()
	return nil
}

func (d *Dataset) rotateOnTime() {
	began := time.Now()
	for {
		select {
		case <-d.stop:
			return
		case <-time.After(d.options.pause(time.Since(began))):
			if d.flush() == nil {
				d.writer.start(d.writer.publish)
			}
		}
	}
}

// pause is how long the next rotation is off.
func (o Options) pause(recorded time.Duration) time.Duration {
	rarer := time.Duration(o.RotateShare * float64(recorded))
	return max(o.RotateEvery, min(rarer, RotateEvery))
}

// Close writes what is left and ends the dataset. After an error it keeps what
// was written before and returns that error. The directory stays open, for Discard,
// until the Dataset is collected.
func (d *Dataset) Close() error {
	_ = d.flush() // the writer knows its errors
	d.mu.Lock()
	again := d.closed
	d.closed = true
	d.mu.Unlock()
	if again {
		return nil
	}
	close(d.stop)
	return d.writer.close()
}

// Discard ends a dataset into which nothing was recorded, before or after Close, and
// takes away all that it is made of, with the directories that Create made.
func (d *Dataset) Discard() error {
	return errors.Join(d.Close(), d.writer.removeAll(), d.dir.Unmake())
}

// Stats says how much each table holds.
func (d *Dataset) Stats() []TableStats { return d.writer.statistics() }

// ViewsFile is the name, within a dataset, of the views for the duckdb shell.
const ViewsFile = "views.sql"
