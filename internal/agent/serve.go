package agent

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
)

// jobView is a job as /jobs tells it.
type jobView struct {
	jobs.Job
	Worker   int           `json:"worker_pid"` // 0 while none runs
	Started  time.Time     `json:"started"`
	Ended    *time.Time    `json:"ended"` // null while it runs: one in which something failed is shown for a while
	Restarts int64         `json:"restarts"`
	Gaps     []gap         `json:"gaps"`
	Failure  string        `json:"failure"`
	Status   worker.Status `json:"status"`
}

func (s *supervisor) view() (all []jobView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = []jobView{}
	for _, j := range s.jobs {
		v := jobView{Job: j.job, Started: j.started, Restarts: j.restarts, Gaps: slices.Clone(j.gaps), Failure: j.failure, Status: j.status}
		if ended := j.ended; !ended.IsZero() {
			v.Ended = &ended
		}
		if j.worker != nil {
			v.Worker = j.worker.Process.Pid
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b jobView) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// handler serves /metrics, /healthz and /jobs.
func (s *supervisor) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /jobs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(s.view())
	})
	return mux
}

// training is the label of a job's name. "job" would be Prometheus's own, which it gives to
// all that it scrapes, and renames ours for.
const training = "training_job"

// The metrics. Names follow Prometheus's rules: base units, _total on counters.
var (
	jobLabel   = []string{training}
	descJobs   = prometheus.NewDesc("ebpfprof_jobs", "jobs that are recorded", nil, nil)
	descAway   = prometheus.NewDesc("ebpfprof_jobs_turned_away", "jobs above max_jobs at the last look", nil, nil)
	descUp     = prometheus.NewDesc("ebpfprof_worker_up", "whether the job's worker runs", jobLabel, nil)
	descStep   = prometheus.NewDesc("ebpfprof_step_seconds", "moving mean of the job's steps on this node", jobLabel, nil)
	descSteps  = prometheus.NewDesc("ebpfprof_steps_total", "steps seen", jobLabel, nil)
	descTrig   = prometheus.NewDesc("ebpfprof_triggers_total", "degradations noticed", []string{training, "kind"}, nil)
	descNow    = prometheus.NewDesc("ebpfprof_degraded", "threads that train, one a rank, whose steps are too long now, or that are blocked", []string{training, "kind"}, nil)
	descWin    = prometheus.NewDesc("ebpfprof_windows_total", "windows recorded", jobLabel, nil)
	descSkip   = prometheus.NewDesc("ebpfprof_windows_skipped_total", "windows not taken because of the cool-down", jobLabel, nil)
	descBytes  = prometheus.NewDesc("ebpfprof_pattern_bytes_total", "bytes of patterns written for the store", jobLabel, nil)
	descUnsent = prometheus.NewDesc("ebpfprof_patterns_dropped_total", "uploads that the disk did not take", jobLabel, nil)
	descRef    = prometheus.NewDesc("ebpfprof_requests_refused_total", "requests for windows that were refused: not signed with the key, or of a later version", jobLabel, nil)
	descRaw    = prometheus.NewDesc("ebpfprof_raw_windows_failed_total", "windows whose raw events could not all be written", jobLabel, nil)
	descDrop   = prometheus.NewDesc("ebpfprof_steps_dropped_total", "steps, waits, anchors and failures beyond the limits", jobLabel, nil)
	descWait   = prometheus.NewDesc("ebpfprof_outbox_bytes", "bytes that the store has not taken yet", nil, nil)
	descOldest = prometheus.NewDesc("ebpfprof_outbox_oldest_timestamp_seconds", "begin of the oldest recording that the store has not taken yet; 0 if nothing waits", nil, nil)
	descSent   = prometheus.NewDesc("ebpfprof_store_bytes_total", "bytes that the store has taken", nil, nil)
	descLost   = prometheus.NewDesc("ebpfprof_outbox_dropped_total", "files that were dropped before the store took them, for want of room", nil, nil)
	descStore  = prometheus.NewDesc("ebpfprof_store_up", "whether the store took what was sent last", nil, nil)
	descProf   = prometheus.NewDesc("ebpfprof_profiles_up", "whether the collector of profiles took what was sent last", nil, nil)
	descProfIn = prometheus.NewDesc("ebpfprof_profiles_bytes_total", "bytes of profiles that the collector has taken", nil, nil)
	descProfNo = prometheus.NewDesc("ebpfprof_profiles_dropped_total", "windows' profiles that were dropped for want of room, or that the collector refused", []string{"reason"}, nil)
	descProfUn = prometheus.NewDesc("ebpfprof_profiles_unwritten_total", "windows' profiles that the disk did not take", jobLabel, nil)
	descCut    = prometheus.NewDesc("ebpfprof_profile_samples_dropped_total", "samples of windows that were too many for a profile", jobLabel, nil)
	descEvents = prometheus.NewDesc("ebpfprof_events_total", "events recorded, windows and what is always on, by the table that they would be rows of", []string{training, "table"}, nil)
	descGone   = prometheus.NewDesc("ebpfprof_events_dropped_total", "events that were lost on their way from the kernel", []string{training, "reason"}, nil)
	descHits   = prometheus.NewDesc("ebpfprof_probe_hits_total", "how often the job has passed probes, entries and returns, those that recorded nothing too", jobLabel, nil)
	descProbes = prometheus.NewDesc("ebpfprof_probes_attached", "probes that were put into the job's files; where the budget has them in slices they are out in between", jobLabel, nil)
	descRing   = prometheus.NewDesc("ebpfprof_ringbuf_pending_bytes", "the most that waited in a ring buffer of the kernel at a look of the last minute or two", []string{training, "ring"}, nil)
	descWrote  = prometheus.NewDesc("ebpfprof_parquet_bytes_total", "bytes of Parquet written: patterns for the store, and raw events of windows", jobLabel, nil)
	descHangs  = prometheus.NewDesc("ebpfprof_hangs_total", "verdicts on ranks that were blocked, by what was found: a rank that is missing or stopped, ranks that disagree (mismatch), that have all come (complete), of which the missing one is on no rank of this node (absent), a collective that was not recorded (unseen), no rank of this node that waits (idle)", []string{training, "kind"}, nil)
	descMiss   = prometheus.NewDesc("ebpfprof_hang_ranks", "ranks of this node in the hang that lasts: those that wait, and those that keep them waiting; 0 while the job goes on", []string{training, "role"}, nil)
	descFailed = prometheus.NewDesc("ebpfprof_failures_total", "what went wrong in the job's processes: memory had no room (out_of_memory), a call returned an error (runtime_error), a process died (died)", []string{training, "kind"}, nil)
	descAgain  = prometheus.NewDesc("ebpfprof_worker_restarts_total", "workers that were started again", jobLabel, nil)
)

// Describe implements prometheus.Collector.
func (s *supervisor) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descAway, descUp, descStep, descSteps, descTrig, descWin, descSkip, descBytes, descUnsent, descRef, descRaw, descDrop, descAgain, descWait, descOldest, descSent, descLost, descStore, descProf, descProfIn, descProfNo, descProfUn, descCut, descEvents, descGone, descWrote, descNow, descHits, descProbes, descRing, descHangs, descMiss, descFailed} {
		to <- d
	}
	s.node.describe(to)
}

// Collect implements prometheus.Collector.
func (s *supervisor) Collect(to chan<- prometheus.Metric) {
	all := s.view()
	s.mu.Lock()
	away, collector, spool := s.crowded, s.config.OTLP != "", s.config.Spool
	s.mu.Unlock()
	var workers []int
	running := 0
	for _, j := range all {
		if j.Ended == nil {
			running++
		}
		if j.Worker != 0 {
			workers = append(workers, j.Worker)
		}
	}
	s.node.collect(to, workers, spool)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(descJobs, float64(running))
	gauge(descAway, float64(away))
	if s.sender != nil {
		box, oldest, up := s.sender.State(), 0.0, 1.0
		if !box.Oldest.IsZero() {
			oldest = float64(box.Oldest.UnixNano()) / 1e9
		}
		if box.Failure != "" {
			up = 0
		}
		gauge(descWait, float64(box.Bytes))
		gauge(descOldest, oldest)
		gauge(descStore, up)
		count(descSent, box.SentBytes)
		count(descLost, box.Dropped)
	}
	if p := s.profiles; p != nil && collector {
		now, up := p.State(), 1.0
		refused, _ := p.client.Refused()
		if now.Failure != "" {
			up = 0
		}
		gauge(descProf, up)
		count(descProfIn, now.SentBytes)
		count(descProfNo, now.Dropped, "room")
		count(descProfNo, refused, "refused")
	}
	for _, j := range all {
		name, up := label(j.Name), 0.0
		if j.Worker != 0 {
			up = 1
		}
		gauge(descUp, up, name)
		gauge(descStep, j.Status.MeanMS/1e3, name)
		count(descSteps, j.Status.Steps, name)
		count(descTrig, j.Status.Slow, name, "slow")
		count(descTrig, j.Status.Blocked, name, "blocked")
		gauge(descNow, float64(j.Status.Now.Slow), name, "slow")
		gauge(descNow, float64(j.Status.Now.Blocked), name, "blocked")
		for _, kind := range hang.Kinds() {
			count(descHangs, j.Status.Hangs[kind], name, kind)
		}
		for _, kind := range live.FailureKinds() {
			count(descFailed, j.Status.Failures[string(kind)], name, string(kind))
		}
		waiting, missing := hangRanks(j.Status.Hang)
		gauge(descMiss, float64(waiting), name, "waiting")
		gauge(descMiss, float64(missing), name, "missing")
		count(descHits, j.Status.Recorded.Hits, name)
		gauge(descProbes, float64(j.Status.Recorded.Probes), name)
		for ring, n := range j.Status.Recorded.Pending {
			gauge(descRing, float64(n), name, ring)
		}
		count(descWin, j.Status.Windows, name)
		count(descSkip, j.Status.Skipped, name)
		count(descBytes, j.Status.Bytes, name)
		count(descUnsent, j.Status.Unsent, name)
		count(descRef, j.Status.Refused, name)
		count(descRaw, j.Status.RawFailed, name)
		count(descDrop, j.Status.Dropped, name)
		count(descProfUn, j.Status.Unwritten, name)
		count(descCut, j.Status.Cut, name)
		count(descWrote, j.Status.Bytes+j.Status.RawBytes, name)
		for table, n := range j.Status.Recorded.Rows {
			count(descEvents, n, name, table)
		}
		for reason, n := range j.Status.Recorded.Lost {
			count(descGone, n, name, reason)
		}
		count(descAgain, j.Restarts, name)
	}
}
