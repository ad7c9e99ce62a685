package cpython

import (
	"container/list"
	"errors"
	"io"
)

// Unresolved is why a Python frame has no name.
type Unresolved uint8

// The reasons.
const (
	UnresolvedUnreadable Unresolved = iota // the memory is gone: the process exited, or unloaded it
	UnresolvedReused                       // the code object was freed, and another is there
	UnresolvedNotCode                      // there never was a code object, or something else is there
	UnresolvedName                         // its name or file name could not be read
	UnresolvedLines                        // its line table could not be read
	UnresolvedBudget                       // its process has had read of it what may be read of one
	UnresolvedReasons
)

var unresolvedNames = [UnresolvedReasons]string{
	"python_code_unreadable", "python_code_reused", "python_code_not_code", "python_code_name", "python_code_lines",
	"python_code_budget",
}

// Name is the reason's name, as it is in the dataset.
func (u Unresolved) Name() string { return unresolvedNames[u] }

type resolveError struct {
	reason Unresolved
	cause  error
}

func (e *resolveError) Error() string { return e.cause.Error() }
func (e *resolveError) Unwrap() error { return e.cause }

// ReasonOf is why Resolve failed.
func ReasonOf(err error) (Unresolved, bool) {
	if e := new(resolveError); errors.As(err, &e) {
		return e.reason, true
	}
	return 0, false
}

// cachedCodes bounds the code objects in the cache of a Resolver; large jobs run
// some thousands.
const cachedCodes = 16384

// Resolver names the code objects of one process. It caches what it read:
// a code object seen once has its name even after it, or the process, is gone.
// It is not safe for concurrent use.
type Resolver struct {
	// Unresolved counts failures by reason.
	Unresolved [UnresolvedReasons]uint64

	runtime *Runtime
	memory  memory
	account Account
	byKey   map[codeKey]*list.Element
	recent  *list.List // of *cached, the last used in front
	limit   int
}

type codeKey struct {
	address  uint64
	checksum uint32
}

type cached struct {
	key  codeKey
	code *Code
}

// Account is of the bytes that are kept of a process, this and other things.
type Account interface {
	Left() int // until its limit
	Add(bytes int)
}

// cachedBytes bounds what a Resolver without an account keeps.
const cachedBytes = 64 << 20

// ownAccount is a Resolver's that nobody gave one.
type ownAccount struct{ used int }

func (a *ownAccount) Left() int     { return cachedBytes - a.used }
func (a *ownAccount) Add(bytes int) { a.used += bytes }

// NewResolver reads the memory of the process whose interpreter rt is.
func NewResolver(rt *Runtime, m io.ReaderAt) *Resolver {
	return &Resolver{runtime: rt, memory: memory{m, namingBudget()}, account: &ownAccount{}, byKey: map[codeKey]*list.Element{},
		recent: list.New(), limit: cachedCodes}
}

// Read is Resolve ahead of time, for code that may be gone when it is asked for: what
// fails is not counted, and is nil.
func (r *Resolver) Read(address uint64, checksum uint32) *Code {
	if checksum == 0 {
		return nil
	}
	key := codeKey{address, checksum}
	if e := r.byKey[key]; e != nil {
		return e.Value.(*cached).code
	}
	code, err := r.runtime.readCode(r.memory, address, checksum)
	if err != nil {
		return nil
	}
	r.remember(key, code)
	return code
}

// Resolve names the code object at an address whose checksum the kernel side
// took; 0 where it could not, which accepts the code that is there now. Call it as soon
// as a frame is seen: the object may be freed at any moment.
func (r *Resolver) Resolve(address uint64, checksum uint32) (*Code, error) {
	key := codeKey{address, checksum}
	if e := r.byKey[key]; e != nil {
		r.recent.MoveToFront(e)
		return e.Value.(*cached).code, nil
	}
	code, err := r.runtime.readCode(r.memory, address, checksum)
	if err != nil {
		if reason, ok := ReasonOf(err); ok {
			r.Unresolved[reason]++
		}
		return nil, err
	}
	if checksum == 0 { // nothing says that the next object here is the same
		return code, nil
	}
	r.remember(key, code)
	return code, nil
}

// Charge has what is kept from here on counted in an account. It is called before anything
// is resolved.
func (r *Resolver) Charge(account Account) { r.account = account }

// remember caches a code object, in the place of those that were used longest ago if the
// account has no room for it. One that has no room even so is not cached.
func (r *Resolver) remember(key codeKey, code *Code) {
	bytes := code.kept()
	for r.recent.Len() > 0 && (r.recent.Len() >= r.limit || r.account.Left() < bytes) {
		r.forgetOldest()
	}
	if r.account.Left() < bytes {
		return
	}
	r.account.Add(bytes)
	r.byKey[key] = r.recent.PushFront(&cached{key, code})
}

func (r *Resolver) forgetOldest() {
	oldest := r.recent.Remove(r.recent.Back()).(*cached)
	delete(r.byKey, oldest.key)
	r.account.Add(-oldest.code.kept())
}

// Forget lets go of all that is cached.
func (r *Resolver) Forget() {
	for r.recent.Len() > 0 {
		r.forgetOldest()
	}
}
