// Package footprint counts the bytes that the tracer keeps of each process: the code objects
// of its interpreter with their line tables, and what is inferred of its generated code. A
// process that says that it has very much of them has no more kept than its limit.
//
// The package is no part of the public API: it may change with any version.
package footprint

import "sync"

// Accounts are those of all processes of a recording. Their methods may be called from any
// goroutine.
type Accounts struct {
	process, user, all int // limits in bytes
	userOf             func(pid int) uint32

	mu    sync.Mutex
	used  int
	users map[uint32]int
	byPID map[int]*Account
}

// Shares of what all processes together may have: one user's at the most a half.
const (
	processesInAll = 4
	userShare      = 2
)

// New makes accounts: of a process are kept so many bytes at the most, of all processes four
// times as many, and of those of one user a half of that.
func New(processBytes int, userOf func(pid int) uint32) *Accounts {
	all := processesInAll * processBytes
	return &Accounts{process: processBytes, user: all / userShare, all: all, userOf: userOf, users: map[uint32]int{},
		byPID: map[int]*Account{}}
}

// An Account is one process's.
type Account struct {
	of   *Accounts
	pid  int
	user uint32
	used int
}

// Of is the account of a process.
func (a *Accounts) Of(pid int) *Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.byPID[pid]; known != nil {
		return known
	}
	made := &Account{of: a, pid: pid, user: a.userOf(pid)}
	a.byPID[pid] = made
	return made
}

// Left is how many bytes more may be kept: of the process, of its user, or of all.
func (a *Account) Left() int {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return min(a.of.process-a.used, a.of.user-a.of.users[a.user], a.of.all-a.of.used)
}

// Add counts what is kept from now on, less than zero what is not kept any more.
func (a *Account) Add(bytes int) {
	of := a.of
	of.mu.Lock()
	defer of.mu.Unlock()
	a.used += bytes
	of.used += bytes
	if of.users[a.user] += bytes; of.users[a.user] == 0 {
		delete(of.users, a.user)
	}
}

// Most is what the process has of which most is kept.
func (a *Accounts) Most() (bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, account := range a.byPID {
		bytes = max(bytes, account.used)
	}
	return bytes
}

// Ended is called when a process has ended: its pid may be another's. What is still kept of it
// stays counted until it goes.
func (a *Accounts) Ended(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byPID, pid)
}
