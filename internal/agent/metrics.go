package agent

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/output"
)

// training is the label of a job's name. "job" would be Prometheus's own, which it gives to
// all that it scrapes, and renames ours for.
const training = "training_job"

// metric is a metric of /metrics. To add one, add it to nodeMetrics or jobMetrics. Names follow
// Prometheus's rules: base units, _total on counters.
type metric[Of any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(Of) []reading
}

// reading is a metric's value at a time, with its labels beside the job's.
type reading struct {
	value  float64
	labels []string
}

func single(value float64) []reading { return []reading{{value: value}} }

func boolean(is bool) []reading {
	if is {
		return single(1)
	}
	return single(0)
}

func ofNode(kind prometheus.ValueType, name, help string, read func(*nodeView) []reading, labels ...string) metric[*nodeView] {
	return metric[*nodeView]{prometheus.NewDesc(name, help, labels, nil), kind, read}
}

func ofJob(kind prometheus.ValueType, name, help string, read func(*jobView) []reading, labels ...string) metric[*jobView] {
	return metric[*jobView]{prometheus.NewDesc(name, help, append([]string{training}, labels...), nil), kind, read}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// nodeView is what the metrics of the node are read from.
type nodeView struct {
	node          *node
	spool         string
	workers       []int // their pids
	running, away int
	outbox        *outbox.State // nil if nothing is sent to a store
	profiles      *outbox.State // nil if nothing is sent to a collector
	refused       int64         // profiles, by the collector
}

var nodeMetrics = []metric[*nodeView]{
	ofNode(gauge, "ebpfprof_build_info", "1, with the versions of the program, its schema and its analyses as labels",
		func(*nodeView) []reading {
			return []reading{{1, []string{version.Version, runtime.Version(), output.SchemaVersion, store.AnalysisVersion}}}
		}, "version", "goversion", "schema_version", "analysis_version"),
	ofNode(counter, "ebpfprof_agent_cpu_seconds_total",
		"CPU time of the agent and its workers, including exited ones, without the probes, which run in the job's time",
		func(n *nodeView) []reading {
			seconds, err := n.node.seconds(n.workers)
			if err != nil {
				return nil
			}
			return single(seconds)
		}),
	ofNode(gauge, "ebpfprof_spool_bytes", "bytes in the spool: raw events of windows, and files waiting for the store and the collector",
		func(n *nodeView) []reading {
			bytes, err := spool.Bytes(n.spool)
			if err != nil {
				return nil
			}
			return single(float64(bytes))
		}),
	ofNode(gauge, "ebpfprof_jobs", "recorded jobs", func(n *nodeView) []reading { return single(float64(n.running)) }),
	ofNode(gauge, "ebpfprof_jobs_turned_away", "jobs above max_jobs at the last poll",
		func(n *nodeView) []reading { return single(float64(n.away)) }),
	ofNode(gauge, "ebpfprof_outbox_bytes", "bytes waiting for the store",
		ofOutbox(func(o *outbox.State) []reading { return single(float64(o.Bytes)) })),
	ofNode(gauge, "ebpfprof_outbox_oldest_timestamp_seconds", "begin of the oldest recording waiting for the store; 0 if none waits",
		ofOutbox(func(o *outbox.State) []reading {
			if o.Oldest.IsZero() {
				return single(0)
			}
			return single(float64(o.Oldest.UnixNano()) / 1e9)
		})),
	ofNode(gauge, "ebpfprof_store_up", "1 if the store accepted the last upload",
		ofOutbox(func(o *outbox.State) []reading { return boolean(o.Failure == "") })),
	ofNode(counter, "ebpfprof_store_bytes_total", "bytes that the store accepted",
		ofOutbox(func(o *outbox.State) []reading { return single(float64(o.SentBytes)) })),
	ofNode(counter, "ebpfprof_outbox_dropped_total", "files dropped for lack of space before the store accepted them",
		ofOutbox(func(o *outbox.State) []reading { return single(float64(o.Dropped)) })),
	ofNode(gauge, "ebpfprof_profiles_up", "1 if the collector of profiles accepted the last request",
		ofProfiles(func(n *nodeView) []reading { return boolean(n.profiles.Failure == "") })),
	ofNode(counter, "ebpfprof_profiles_bytes_total", "bytes of profiles that the collector accepted",
		ofProfiles(func(n *nodeView) []reading { return single(float64(n.profiles.SentBytes)) })),
	ofNode(counter, "ebpfprof_profiles_dropped_total", "profiles of windows dropped for lack of space, or refused by the collector",
		ofProfiles(func(n *nodeView) []reading {
			return []reading{{float64(n.profiles.Dropped), []string{"room"}}, {float64(n.refused), []string{"refused"}}}
		}), "reason"),
}

func ofOutbox(read func(*outbox.State) []reading) func(*nodeView) []reading {
	return func(n *nodeView) []reading {
		if n.outbox == nil {
			return nil
		}
		return read(n.outbox)
	}
}

func ofProfiles(read func(*nodeView) []reading) func(*nodeView) []reading {
	return func(n *nodeView) []reading {
		if n.profiles == nil {
			return nil
		}
		return read(n)
	}
}

var jobMetrics = []metric[*jobView]{
	ofJob(gauge, "ebpfprof_worker_up", "1 while the job's worker runs", func(j *jobView) []reading { return boolean(j.Worker != 0) }),
	ofJob(counter, "ebpfprof_worker_restarts_total", "restarts of the job's worker",
		func(j *jobView) []reading { return single(float64(j.Restarts)) }),
	ofJob(gauge, "ebpfprof_step_seconds", "moving mean of the job's step time on this node",
		func(j *jobView) []reading { return single(j.Status.MeanMS / 1e3) }),
	ofJob(counter, "ebpfprof_steps_total", "observed steps", func(j *jobView) []reading { return single(float64(j.Status.Steps)) }),
	ofJob(counter, "ebpfprof_triggers_total", "detected degradations", func(j *jobView) []reading {
		return []reading{{float64(j.Status.Slow), []string{"slow"}}, {float64(j.Status.Blocked), []string{"blocked"}}}
	}, "kind"),
	ofJob(gauge, "ebpfprof_degraded", "training threads, one per rank, that are slow or blocked now", func(j *jobView) []reading {
		return []reading{{float64(j.Status.Now.Slow), []string{"slow"}}, {float64(j.Status.Now.Blocked), []string{"blocked"}}}
	}, "kind"),
	ofJob(counter, "ebpfprof_hangs_total", "verdicts on blocked ranks, by kind: a missing or stopped rank, ranks that disagree (mismatch), "+
		"all ranks present (complete), the missing rank on another node (absent), a collective that was not recorded (unseen), "+
		"no waiting rank on this node (idle)",
		func(j *jobView) (all []reading) {
			for _, kind := range hang.Kinds() {
				all = append(all, reading{float64(j.Status.Hangs[kind]), []string{kind}})
			}
			return all
		}, "kind"),
	ofJob(gauge, "ebpfprof_hang_ranks",
		"ranks of this node in the current hang: waiting ones, and missing ones that they wait for; 0 without a hang",
		func(j *jobView) []reading {
			waiting, missing := hangRanks(j.Status.Hang)
			return []reading{{float64(waiting), []string{"waiting"}}, {float64(missing), []string{"missing"}}}
		}, "role"),
	ofJob(counter, "ebpfprof_failures_total", "failures in the job's processes: an allocation failed (out_of_memory), "+
		"a call returned an error (runtime_error), a process died (died)",
		func(j *jobView) (all []reading) {
			for _, kind := range live.FailureKinds() {
				all = append(all, reading{float64(j.Status.Failures[string(kind)]), []string{string(kind)}})
			}
			return all
		}, "kind"),
	ofJob(counter, "ebpfprof_probe_hits_total", "probe hits, entries and returns, including those that recorded nothing",
		func(j *jobView) []reading { return single(float64(j.Status.Recorded.Hits)) }),
	ofJob(gauge, "ebpfprof_probes_attached", "probes in the job's files, including those that the budget attaches in slices only",
		func(j *jobView) []reading { return single(float64(j.Status.Recorded.Probes)) }),
	ofJob(gauge, "ebpfprof_ringbuf_pending_bytes", "the most bytes waiting in a ring buffer at a poll of the last two minutes",
		func(j *jobView) []reading { return byLabel(j.Status.Recorded.Pending) }, "ring"),
	ofJob(counter, "ebpfprof_windows_total", "recorded windows", func(j *jobView) []reading { return single(float64(j.Status.Windows)) }),
	ofJob(counter, "ebpfprof_windows_skipped_total", "windows skipped during the cool-down",
		func(j *jobView) []reading { return single(float64(j.Status.Skipped)) }),
	ofJob(counter, "ebpfprof_pattern_bytes_total", "bytes of patterns written for the store",
		func(j *jobView) []reading { return single(float64(j.Status.Bytes)) }),
	ofJob(counter, "ebpfprof_patterns_dropped_total", "uploads that could not be written to disk",
		func(j *jobView) []reading { return single(float64(j.Status.Unsent)) }),
	ofJob(counter, "ebpfprof_requests_refused_total", "refused requests for windows: not signed with the key, or of a later version",
		func(j *jobView) []reading { return single(float64(j.Status.Refused)) }),
	ofJob(counter, "ebpfprof_raw_windows_failed_total", "windows whose raw events could not all be written",
		func(j *jobView) []reading { return single(float64(j.Status.RawFailed)) }),
	ofJob(counter, "ebpfprof_steps_dropped_total", "steps, waits, anchors and failures dropped beyond the limits",
		func(j *jobView) []reading { return single(float64(j.Status.Dropped)) }),
	ofJob(counter, "ebpfprof_profiles_unwritten_total", "profiles of windows that could not be written to disk",
		func(j *jobView) []reading { return single(float64(j.Status.Unwritten)) }),
	ofJob(counter, "ebpfprof_profile_samples_dropped_total", "samples of windows beyond the limit of a profile",
		func(j *jobView) []reading { return single(float64(j.Status.Cut)) }),
	ofJob(counter, "ebpfprof_parquet_bytes_total", "bytes of Parquet written: patterns for the store, and raw events of windows",
		func(j *jobView) []reading { return single(float64(j.Status.Bytes + j.Status.RawBytes)) }),
	ofJob(counter, "ebpfprof_events_total", "recorded events, in windows and between them, by the table of their rows",
		func(j *jobView) []reading { return byLabel(j.Status.Recorded.Rows) }, "table"),
	ofJob(counter, "ebpfprof_events_dropped_total", "events lost between the kernel and the agent",
		func(j *jobView) []reading { return byLabel(j.Status.Recorded.Lost) }, "reason"),
}

func byLabel[Value int64 | uint64](values map[string]Value) (all []reading) {
	for label, value := range values {
		all = append(all, reading{float64(value), []string{label}})
	}
	return all
}

// Describe implements prometheus.Collector.
func (s *supervisor) Describe(to chan<- *prometheus.Desc) {
	for _, m := range nodeMetrics {
		to <- m.desc
	}
	for _, m := range jobMetrics {
		to <- m.desc
	}
	s.node.uploads.Describe(to)
}

// Collect implements prometheus.Collector.
func (s *supervisor) Collect(to chan<- prometheus.Metric) {
	all := s.view()
	n := s.nodeView(all)
	for _, m := range nodeMetrics {
		for _, r := range m.read(n) {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, r.value, r.labels...)
		}
	}
	for i := range all {
		name := label(all[i].Name)
		for _, m := range jobMetrics {
			for _, r := range m.read(&all[i]) {
				to <- prometheus.MustNewConstMetric(m.desc, m.kind, r.value, append([]string{name}, r.labels...)...)
			}
		}
	}
	s.node.uploads.Collect(to)
}

func (s *supervisor) nodeView(all []jobView) *nodeView {
	s.mu.Lock()
	n := &nodeView{node: s.node, spool: s.config.Spool, away: int(s.crowded)}
	collector := s.config.OTLP != ""
	s.mu.Unlock()
	for _, j := range all {
		if j.Ended == nil {
			n.running++
		}
		if j.Worker != 0 {
			n.workers = append(n.workers, j.Worker)
		}
	}
	if s.sender != nil {
		n.outbox = new(s.sender.State())
	}
	if p := s.profiles; p != nil && collector {
		n.profiles = new(p.State())
		n.refused, _ = p.client.Refused()
	}
	return n
}
