package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Errors of Discover besides *UnsupportedError.
var (
	// ErrNoRuntime: the file names no _PyRuntime.
	ErrNoRuntime = errors.New("no _PyRuntime in the file: a stripped static interpreter cannot be found")
	// ErrNotInitialised: the interpreter has not started yet; ask again.
	ErrNotInitialised = errors.New("the interpreter is not initialised yet")
)

// Bounds of what is followed in a job's memory.
const (
	maxInterpreters = 64
	maxThreads      = 4096
	maxCompared     = 64 // threads whose values are tried under each key
)

// Image is an interpreter's file as one process has it mapped.
type Image struct {
	File    *elf.File
	Bias    uint64 // what the loader added to the file's addresses
	Version Version
	Libc    *elf.File // the file that has struct pthread; nil: glibc's usual layout
	Musl    bool      // that file is musl
	Budget  *Budget   // of all searches in this process; nil: this one has its own
}

// Runtime is a live interpreter: addresses in one process.
type Runtime struct {
	Version Version
	Offsets Offsets
	Pthread Pthread
	Address uint64 // of _PyRuntime
	// AutoTSS is the address of {int initialised; pthread_key_t key}, 0 where
	// it is not where the version has it; then Key was found by search.
	AutoTSS uint64
	Key     uint32
	// Verified: the slot of a known thread held that thread's state. Without a
	// thread whose pthread_self is known, nothing was compared.
	Verified bool
	// Interpreter is the main one; GIL and Collecting are its own, 0 where
	// there is none.
	Interpreter uint64
	GIL         uint64 // of {last_holder, locked}
	Collecting  uint64
	CodeType    uint64 // address of PyCode_Type, 0 where the file does not name it
}

// thread is one entry of an interpreter's list of thread states.
type thread struct{ state, self uint64 }

// Discover finds the interpreter of an image in the memory of its process and
// makes sure that it is laid out as expected. The errors are ErrNoRuntime,
// ErrNotInitialised, ErrDebugOffsets, ErrBudget, *UnsupportedError, and those of reading.
func Discover(r io.ReaderAt, image Image) (*Runtime, error) {
	m := memory{r, image.Budget}
	if m.budget == nil {
		m.budget = SearchBudget()
	}
	address, contents, err := locate(image.File)
	if err != nil {
		return nil, err
	}
	rt := &Runtime{Version: image.Version, Address: address + image.Bias}
	if s, ok := image.File.Lookup("PyCode_Type"); ok {
		rt.CodeType = s.Address + image.Bias
	}
	if err := refuseFlavours(image); err != nil {
		return nil, err
	}
	if err := rt.chooseOffsets(m, contents); err != nil {
		return nil, err
	}
	if rt.Pthread, err = image.pthread(rt.Version); err != nil {
		return nil, err
	}
	threads, err := rt.readInterpreters(m)
	if err != nil {
		return nil, err
	}
	if err := rt.findKey(m, threads); err != nil {
		return nil, err
	}
	return rt, rt.findLocks(m)
}

// pthread is where the process's threads keep their values.
func (i Image) pthread(version Version) (Pthread, error) {
	switch {
	case i.Musl && i.Libc != nil:
		if found, ok := findMusl(i.Libc); ok {
			return found, nil
		}
		fallthrough
	case i.Musl:
		return Pthread{}, &UnsupportedError{version.String(), FlavourMusl}
	case i.Libc != nil:
		return FindPthread(i.Libc), nil
	}
	return pthreads[i.File.Machine()], nil
}

// locate finds _PyRuntime by its symbol, else by the section that it has to
// itself since 3.10, and what the file fills it with.
func locate(file *elf.File) (address uint64, contents []byte, err error) {
	if s, ok := file.Lookup("_PyRuntime"); ok {
		return s.Address, file.CodeAt(s.Address, 4096), nil
	}
	if contents, address, ok := file.Section(".PyRuntime"); ok {
		return address, contents, nil
	}
	return 0, nil, ErrNoRuntime
}

// refuseFlavours knows builds by functions that only they export.
func refuseFlavours(image Image) error {
	for _, mark := range []struct {
		symbol  string
		flavour Flavour
	}{
		{"_Py_AddToAllObjects", FlavourTraceRefs},
		{"_Py_NegativeRefcount", FlavourDebug}, // Py_REF_DEBUG
		{"_PyCinder_Init", FlavourCinder},
		{"Cinder_Init", FlavourCinder},
	} {
		if _, ok := image.File.Lookup(mark.symbol); ok {
			return &UnsupportedError{image.Version.String(), mark.flavour}
		}
	}
	return nil
}

// chooseOffsets takes the table of the version, and what the build says of
// itself where it does.
func (rt *Runtime) chooseOffsets(m memory, contents []byte) error {
	debug, err := ParseDebugOffsets(contents)
	if err != nil && !errors.Is(err, ErrNoDebugOffsets) {
		return err
	}
	if debug != nil {
		rt.Version = debug.Version
	}
	if rt.Version.FreeThreaded && rt.Version.Minor == 13 {
		return &UnsupportedError{rt.Version.String(), FlavourFreeThreaded}
	}
	table := Lookup(rt.Version)
	if table == nil {
		return &UnsupportedError{rt.Version.String(), FlavourVersion}
	}
	rt.Offsets = table.Offsets
	if debug == nil {
		if rt.Offsets.RuntimeInterpreters == Absent {
			return fmt.Errorf("reading the offsets of Python %s: %w", rt.Version, ErrNoDebugOffsets)
		}
		return nil
	}
	rt.Offsets = debug.Apply(rt.Offsets)
	if err := rt.Offsets.check(); err != nil {
		return err
	}
	live := make([]byte, 24) // cookie, version, free_threaded
	if err := m.read(rt.Address, live); err != nil {
		return fmt.Errorf("confirming _Py_DebugOffsets: %w", err)
	}
	if string(live) != string(contents[:24]) {
		return &UnsupportedError{rt.Version.String(), FlavourUnknown}
	}
	return nil
}

// readInterpreters follows the lists of interpreters and threads: they close,
// or the layout is not the one that was thought. A list that comes back to what was
// already met ends there: it may lead round and round.
func (rt *Runtime) readInterpreters(m memory) ([]thread, error) {
	o := &rt.Offsets
	main, err := m.word(rt.Address + uint64(o.RuntimeMain))
	if err != nil {
		return nil, err
	}
	next, err := m.word(rt.Address + uint64(o.RuntimeInterpreters))
	if err != nil {
		return nil, err
	}
	if main == 0 || next == 0 {
		return nil, ErrNotInitialised
	}
	rt.Interpreter = main
	var threads []thread
	seen := false
	met := map[uint64]bool{}
	for i := 0; next != 0 && !met[next] && i < maxInterpreters && len(threads) < maxThreads; i++ {
		met[next] = true
		seen = seen || next == main
		found, err := rt.readThreads(m, next, met)
		if err != nil {
			return nil, err
		}
		threads = append(threads, found...)
		if next, err = m.word(next + uint64(o.InterpreterNext)); err != nil {
			return nil, rt.unknown(err)
		}
	}
	if !seen {
		return nil, rt.unknown(nil)
	}
	if len(threads) == 0 {
		return nil, ErrNotInitialised
	}
	return threads, nil
}

func (rt *Runtime) readThreads(m memory, interpreter uint64, met map[uint64]bool) ([]thread, error) {
	o := &rt.Offsets
	state, err := m.word(interpreter + uint64(o.InterpreterThreads))
	if err != nil {
		return nil, rt.unknown(err)
	}
	var threads []thread
	for state != 0 && !met[state] && len(threads) < maxThreads {
		met[state] = true
		var owner, self uint64
		if owner, err = m.word(state + uint64(o.StateInterpreter)); err != nil {
			return nil, rt.unknown(err)
		}
		if owner != interpreter {
			return nil, rt.unknown(nil)
		}
		if self, err = m.word(state + uint64(o.StateThread)); err != nil {
			return nil, rt.unknown(err)
		}
		threads = append(threads, thread{state, self})
		if state, err = m.word(state + uint64(o.StateNext)); err != nil {
			return nil, rt.unknown(err)
		}
	}
	return threads, nil
}

// unknown is the error of a list that does not close.
func (rt *Runtime) unknown(err error) error {
	refused := &UnsupportedError{rt.Version.String(), FlavourUnknown}
	if err != nil {
		return fmt.Errorf("%w (%w)", refused, err)
	}
	return refused
}

// keySearch is how far behind its place on x86-64 autoTSSkey is looked for:
// what lies before it holds mutexes, whose size differs by architecture.
const keySearch = 512

// findKey finds the key under which threads keep their state: where the version
// has it, near that, or by the values of a thread that is known.
func (rt *Runtime) findKey(m memory, threads []thread) error {
	base := rt.Address + uint64(rt.Offsets.RuntimeAutoTSS)
	var b [keySearch + 8]byte
	if err := m.read(base, b[:]); err != nil {
		return err
	}
	for at := 0; at <= keySearch; at += 8 {
		initialised, key := binary.LittleEndian.Uint32(b[at:]), binary.LittleEndian.Uint32(b[at+4:])
		if initialised != 1 || key >= maxKeys {
			continue
		}
		right, known := rt.holdsState(m, threads, key)
		if right || !known && at == 0 {
			rt.AutoTSS, rt.Key, rt.Verified = base+uint64(at), key, right
			return nil
		}
	}
	for key := range uint32(maxKeys) {
		if right, _ := rt.holdsState(m, threads, key); right {
			rt.Key, rt.Verified = key, true
			return nil
		}
	}
	if m.budget.spent() {
		return ErrBudget
	}
	if binary.LittleEndian.Uint32(b[:]) == 0 {
		return ErrNotInitialised
	}
	return rt.unknown(nil)
}

// holdsState reports whether some thread has its state under the key; known is
// false where no thread's values could be read.
func (rt *Runtime) holdsState(m memory, threads []thread, key uint32) (right, known bool) {
	compared := 0
	for _, t := range threads {
		if t.self == 0 { // just made: it has bound its state to no thread yet
			continue
		}
		if compared++; compared > maxCompared {
			break
		}
		value, err := rt.Pthread.value(m, t.self, key)
		if errors.Is(err, ErrBudget) {
			break
		}
		if err != nil {
			continue
		}
		if value == t.state {
			return true, true
		}
		known = true
	}
	return false, known
}

// findLocks resolves the addresses of the main interpreter's GIL and collector.
func (rt *Runtime) findLocks(m memory) error {
	o := &rt.Offsets
	switch {
	case o.RuntimeGIL != Absent:
		rt.GIL = rt.Address + uint64(o.RuntimeGIL)
	case o.InterpreterGIL != Absent:
		gil, err := m.word(rt.Interpreter + uint64(o.InterpreterGIL))
		if err != nil {
			return fmt.Errorf("finding the GIL: %w", err)
		}
		if gil != 0 {
			rt.GIL = gil + uint64(o.GILHolder)
		}
	}
	switch {
	case o.RuntimeCollecting != Absent:
		rt.Collecting = rt.Address + uint64(o.RuntimeCollecting)
	case o.InterpreterCollecting != Absent:
		rt.Collecting = rt.Interpreter + uint64(o.InterpreterCollecting)
	}
	return nil
}
