package agent

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// A worker reads what hostile jobs put before it: it has what it needs.

// workerEnvironment is the agent's without the credentials of the store, if that is a bucket: a
// worker asks it itself only for requests, which take a key.
func workerEnvironment(environment []string, c *config.Config) []string {
	if c.KeyFile != "" && store.IsBucket(c.Store) {
		return environment
	}
	return slices.DeleteFunc(slices.Clone(environment), func(entry string) bool { return strings.HasPrefix(entry, "AWS_") })
}

// limitMemory bounds the memory of a worker that is no file's and shared with nobody. One that
// needs more ends, alone: the soft limit, max_rss_mb, comes long before.
func limitMemory(pid int, softMB int64) error {
	bytes := uint64(workerBytes(softMB))
	return unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}

// threadStack is the stack of a worker's threads. The C library gives each as much as RLIMIT_STACK says,
// 8 MiB in most places, and all of it counts as data, touched or not: of sixty threads that was half of
// the limit. A quarter of it is what a program's arguments and environment may be.
const threadStack = 2 << 20

// withSmallStacks starts a program whose threads have such stacks.
func withSmallStacks(start func() error) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil || limit.Cur <= threadStack {
		return start()
	}
	small := unix.Rlimit{Cur: threadStack, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &small); err == nil {
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_STACK, &limit) }()
	}
	return start()
}

// workerBytes is the hard limit that goes with a soft one: the heap may have twice its size
// before it is collected, and stacks and tables of the runtime come on top.
func workerBytes(softMB int64) int { return int(2*softMB+256) << 20 }
