// Package localise compares the workers of a job by their patterns: which function
// takes longer than it should on all of them (a common problem), and which worker
// differs from its peers (a special one). It is pure arithmetic over plain values.
//
// The method is PerfTracker's; the boxes, the floor of the median deviation and the
// rules for fewer than eight workers are this project's.
package localise

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// The constants of the method.
const (
	floor      = 0.01 // beta below which nothing is reported
	far        = 0.4  // normalised distance from which a worker is another one
	peers      = 100  // to compare with
	deviations = 5    // of the median, above which Delta is an outlier
	leastMAD   = 0.02
	fewWorkers = 8   // below: the distance from the median of the others
	standard   = 3.0 // errors of its samples that a difference must exceed
)

// Kind says whom a finding is about.
type Kind string

// The kinds.
const (
	Common  Kind = "common"  // most workers have it
	Special Kind = "special" // a worker differs from its peers
)

// Worker names a worker.
type Worker struct {
	Host string `json:"host"`
	PID  int32  `json:"pid"`
	Rank int32  `json:"rank"` // -1 where the recording has none
}

// Finding is a function that stands out on a worker, or on most of them.
type Finding struct {
	Kind    Kind
	Workers []Worker // the one, or for a common problem those that have it
	// Pattern is the worker's, averaged over its windows; of a common problem that of
	// the worker with the median share.
	Pattern pattern.Pattern
	// PeersBeta, PeersMu and PeersSigma are the median of the other workers, component
	// by component.
	PeersBeta, PeersMu, PeersSigma float64
	D                              float64 // distance from the class's expectation, from 0 to 2
	Delta                          float64 // distance from peers; its meaning is Result.Method's
	Score                          float64 // the larger of the two × beta: findings are in its order
	Cause                          Cause
	Sentence                       string
}

// Result is what a comparison says.
type Result struct {
	Workers  []Worker
	Findings []Finding // what to look at first is first; symptoms come last
	// Method is how workers were compared: peers (the share of a sample of them that is
	// far), leave_one_out (the distance from the median of the others), or none.
	Method string
	Notes  []string // what is not known, and why
}

type key struct {
	function uint64
	basis    pattern.Basis
}

// table holds each worker's patterns, averaged over its windows.
type table struct {
	workers []Worker
	rows    map[key][]*pattern.Pattern // by worker; nil where it has none
	// launches is for how long each worker's launches were recorded, ns, by worker: shares of
	// a device are of that time. A recording that had no launches says nothing of a device.
	launches []float64

	running   []float64 // what load has found, by worker; nil before
	throttled []*pattern.Pattern
	read      []bool                        // by worker: some counter of its node was recorded
	counters  map[string][]*pattern.Pattern // what counter has found, by name and worker; nil before
}

// Compare compares the workers of a job by the patterns of one or more windows. The
// result does not depend on the order of the rows.
func Compare(patterns []pattern.Pattern) Result {
	t := arrange(patterns)
	r := Result{Workers: t.workers, Method: "peers"}
	switch n := len(t.workers); {
	case n < 3:
		r.Method = "none"
		r.Notes = append(r.Notes, "fewer than three workers: none can be told from its peers, only what exceeds the expectation of its class "+
			"is reported")
	case n < fewWorkers:
		r.Method = "leave_one_out"
	}
	for _, k := range t.keys() {
		switch k.basis {
		case pattern.Sampled:
			r.Findings = append(r.Findings, t.findings(k, r.Method)...)
		case pattern.Device:
			r.Findings = append(r.Findings, t.deviceFindings(k, r.Method)...)
		}
	}
	for i := range r.Findings {
		t.explain(&r.Findings[i])
	}
	rank(r.Findings)
	return r
}

// rank puts findings in their order: the highest score first, symptoms last.
func rank(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		if a.Cause.Symptom != b.Cause.Symptom {
			if b.Cause.Symptom {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Score, a.Score)
	})
}

// keys are the functions in an order that is always the same.
func (t *table) keys() []key {
	keys := make([]key, 0, len(t.rows))
	for k := range t.rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.basis, b.basis), cmp.Compare(a.function, b.function))
	})
	return keys
}

// arrange averages the windows of each worker, by how long it was observed in each.
func arrange(patterns []pattern.Pattern) *table {
	t := &table{rows: map[key][]*pattern.Pattern{}}
	index := map[Worker]int{}
	for i := range patterns {
		w := workerOf(&patterns[i])
		if _, ok := index[w]; !ok {
			index[w] = 0
			t.workers = append(t.workers, w)
		}
	}
	slices.SortFunc(t.workers, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	for i, w := range t.workers {
		index[w] = i
	}
	observed := watched{make([]float64, len(t.workers)), map[window]bool{}}
	launches := watched{make([]float64, len(t.workers)), map[window]bool{}}
	t.launches = launches.ns
	sums := map[key][]*sum{}
	for i := range patterns {
		p := &patterns[i]
		w := index[workerOf(p)]
		observed.add(w, p)
		if p.Basis == pattern.Device {
			launches.add(w, p)
		}
		k := key{p.Function, p.Basis}
		if sums[k] == nil {
			sums[k] = make([]*sum, len(t.workers))
		}
		if sums[k][w] == nil {
			sums[k][w] = &sum{}
		}
		sums[k][w].add(p)
	}
	for k, row := range sums {
		t.rows[k] = make([]*pattern.Pattern, len(row))
		for w, s := range row {
			if s == nil {
				continue
			}
			of := observed
			if k.basis == pattern.Device {
				of = launches
			}
			t.rows[k][w] = s.mean(of.ns[w]) // the sum's own: it is through
		}
	}
	return t
}

// watched adds up for how long workers were observed, each window once.
type watched struct {
	ns   []float64 // by worker
	seen map[window]bool
}

type window struct {
	worker int
	begin  int64
}

func (s *watched) add(worker int, p *pattern.Pattern) {
	if at := (window{worker, p.BeginNS}); !s.seen[at] {
		s.seen[at] = true
		s.ns[worker] += float64(p.ObservedNS)
	}
}

func workerOf(p *pattern.Pattern) Worker { return Worker{p.Host, p.PID, p.Rank} }
