package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/output"
)

// Metrics of the agent itself: what it is, and what it takes of the node.
var (
	descBuild = prometheus.NewDesc("ebpfprof_build_info", "1; the labels say which program this is, and of what its data are", []string{"version", "goversion", "schema_version", "analysis_version"}, nil)
	descCPU   = prometheus.NewDesc("ebpfprof_agent_cpu_seconds_total", "CPU time of the agent and its workers, those that have ended too; not of its probes, which run in the job's time", nil, nil)
	descSpool = prometheus.NewDesc("ebpfprof_spool_bytes", "bytes in the spool: raw events of windows, and what waits for the store and the collector", nil, nil)
)

// node is what these are told from.
type node struct {
	uploads *prometheus.HistogramVec

	mu  sync.Mutex
	cpu float64 // the most that was told
}

func newNode() *node {
	uploads := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ebpfprof_upload_duration_seconds", Help: "time of one file's way into the store, or until that failed",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, // a file has ten seconds
	}, []string{"result"})
	for _, result := range []string{"ok", "failed"} {
		uploads.WithLabelValues(result) // before the first one, too
	}
	return &node{uploads: uploads}
}

func (n *node) describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBuild, descCPU, descSpool} {
		to <- d
	}
	n.uploads.Describe(to)
}

func (n *node) collect(to chan<- prometheus.Metric, workers []int, directory string) {
	to <- prometheus.MustNewConstMetric(descBuild, prometheus.GaugeValue, 1, version.Version, runtime.Version(), output.SchemaVersion, store.AnalysisVersion)
	if seconds, err := n.seconds(workers); err == nil {
		to <- prometheus.MustNewConstMetric(descCPU, prometheus.CounterValue, seconds)
	}
	if held, err := spool.Bytes(directory); err == nil {
		to <- prometheus.MustNewConstMetric(descSpool, prometheus.GaugeValue, float64(held))
	}
	n.uploads.Collect(to)
}

// seconds is the CPU time of this process, of the children that it has waited for, and of
// the workers that live. A worker that ends between two of these looks is in none of them,
// so that the sum may be less than it was: the most is told until it is more. It is in no
// two of them, since those that have ended are looked at first.
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
	for _, pid := range workers {
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
