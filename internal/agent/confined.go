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

// workerBytes is the hard limit that goes with a soft one: the heap may have twice its size
// before it is collected, and stacks and tables of the runtime come on top.
func workerBytes(softMB int64) int { return int(2*softMB+256) << 20 }
