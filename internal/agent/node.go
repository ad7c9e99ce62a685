package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// node measures what the agent itself takes of the machine.
type node struct {
	uploads *prometheus.HistogramVec

	mu  sync.Mutex
	cpu float64 // the most that was returned
}

func newNode() *node {
	uploads := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ebpfprof_upload_duration_seconds", Help: "duration of the upload of a file to the store, failed ones included",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, // a file has ten seconds
	}, []string{"result"})
	for _, result := range []string{"ok", "failed"} {
		uploads.WithLabelValues(result) // before the first one, too
	}
	return &node{uploads: uploads}
}

// seconds is the CPU time of this process, of the children that it has waited for, and of
// the live workers and readers. A worker that exits between these reads is in none of them, and the sum
// may be less than before: then the former sum is returned, since a counter never falls. A
// worker is in no two of them, since exited children are read first.
func (n *node) seconds(workers []int) (float64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0.0
	for _, who := range []int{syscall.RUSAGE_CHILDREN, syscall.RUSAGE_SELF} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0, err
		}
		sum += time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	}
	for _, pid := range append(reader.PIDs(), workers...) {
		sum += childSeconds(pid)
	}
	n.cpu = max(n.cpu, sum)
	return n.cpu, nil
}

// ticks of /proc in a second: USER_HZ, which is 100 on every architecture that this runs on.
const ticks = 100

// childSeconds is the CPU time of a child that has not been waited for, and of the children
// that it has waited for; 0 where the number is no child's any more.
func childSeconds(pid int) (seconds float64) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The command's name is in parentheses and may have any characters; proc_pid_stat(5).
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 || string(fields[1]) != strconv.Itoa(os.Getpid()) {
		return 0
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0
		}
		seconds += float64(n) / ticks
	}
	return seconds
}

// timed is a store whose answers are timed.
type timed struct {
	to      outbox.Taker
	uploads *prometheus.HistogramVec
}

// Put implements outbox.Taker.
func (t timed) Put(ctx context.Context, key string, content []byte) error {
	began, result := time.Now(), "ok"
	err := t.to.Put(ctx, key, content)
	if err != nil {
		result = "failed"
	}
	t.uploads.WithLabelValues(result).Observe(time.Since(began).Seconds())
	return err
}
