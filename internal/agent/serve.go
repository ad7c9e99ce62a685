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
)

// jobView is a job as /jobs shows it.
type jobView struct {
	jobs.Job
	Worker   int           `json:"worker_pid"` // 0 while none runs
	Started  time.Time     `json:"started"`
	Ended    *time.Time    `json:"ended"` // null while it runs: a failed job is shown for a while
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
		v := jobView{
			Job: j.job, Started: j.started, Restarts: j.restarts, Gaps: slices.Clone(j.gaps), Failure: j.failure, Status: j.status,
		}
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
