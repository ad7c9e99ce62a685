package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/fleet/localise"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// heat is a picture of numbers: a row a worker.
type heat struct {
	title   string
	legend  string
	workers []localise.Worker
	columns []string    // their names; empty where they are only counted
	values  [][]float64 // by worker and column; NaN where there is nothing
	most    float64     // what is drawn darkest
}

// The sizes of the pictures. Of more workers those with findings are drawn, then the
// slowest: a line says how many are left out.
const (
	drawnWorkers   = 32
	drawnSteps     = 64
	drawnFunctions = 12
)

// stepHeat is worker × step: a worker's own time in each step, without its waits for
// peers. Steps that do not fit are averaged side by side.
func (r *Report) stepHeat() (h heat, ok bool) {
	if len(r.steps) == 0 {
		return heat{}, false
	}
	h = heat{title: "own time of each worker's steps (without waits for peers)", legend: "light is short, dark is long"}
	rows := align(r.steps)
	if len(rows) == 0 {
		return heat{}, false
	}
	columns := min(len(rows), drawnSteps)
	for _, w := range r.drawn() {
		index := slices.IndexFunc(r.steps, func(s []pattern.Step) bool { return s[0].PID == w.PID && s[0].Host == w.Host })
		if index < 0 {
			continue
		}
		values := make([]float64, columns)
		for c := range columns {
			from, to := c*len(rows)/columns, (c+1)*len(rows)/columns
			for _, row := range rows[from:to] {
				values[c] += float64(max(0, row[index].PeriodNS-row[index].WaitNS)) / 1e6 / float64(to-from)
			}
			h.most = max(h.most, values[c])
		}
		h.workers, h.values = append(h.workers, w), append(h.values, values)
	}
	return h, len(h.values) > 0
}

// functionHeat is worker × function: the functions with the largest share on some
// worker, the time in each as a share of the observed.
func (r *Report) functionHeat() (h heat, ok bool) {
	h = heat{title: "share of each worker's time by function", most: 1}
	type column struct {
		id   uint64
		name string
		most float64
	}
	all := map[uint64]*column{}
	shares := map[localise.Worker]map[uint64]float64{}
	observed := map[localise.Worker]float64{}
	seen := map[localise.Worker]map[int64]bool{}
	for i := range r.table {
		p := &r.table[i]
		if p.Basis != pattern.Sampled {
			continue
		}
		w := localise.Worker{Host: p.Host, PID: p.PID, Rank: p.Rank}
		if shares[w] == nil {
			shares[w], seen[w] = map[uint64]float64{}, map[int64]bool{}
		}
		if !seen[w][p.BeginNS] {
			seen[w][p.BeginNS] = true
			observed[w] += float64(p.ObservedNS)
		}
		shares[w][p.Function] += p.Beta * float64(p.ObservedNS)
		if all[p.Function] == nil {
			all[p.Function] = &column{id: p.Function, name: string(p.Class) + ": " + p.Name}
		}
	}
	for w, of := range shares {
		for id, time := range of {
			of[id] = time / observed[w]
			all[id].most = max(all[id].most, of[id])
		}
	}
	columns := make([]*column, 0, len(all))
	for _, c := range all {
		columns = append(columns, c)
	}
	slices.SortFunc(columns, func(a, b *column) int { return cmp.Or(cmp.Compare(b.most, a.most), cmp.Compare(a.id, b.id)) })
	columns = columns[:min(len(columns), drawnFunctions)]
	for _, c := range columns {
		h.columns = append(h.columns, c.name)
	}
	for _, w := range r.drawn() {
		of, ok := shares[w]
		if !ok {
			continue
		}
		values := make([]float64, len(columns))
		for i, c := range columns {
			values[i] = math.NaN()
			if share, ok := of[c.id]; ok {
				values[i] = share
			}
		}
		h.workers, h.values = append(h.workers, w), append(h.values, values)
	}
	return h, len(h.values) > 0
}

// drawn are the workers of the pictures.
func (r *Report) drawn() (all []localise.Worker) {
	for _, f := range r.Findings {
		if f.Kind != string(localise.Special) {
			continue
		}
		for _, w := range f.Workers {
			if !slices.Contains(all, w) && len(all) < drawnWorkers {
				all = append(all, w)
			}
		}
	}
	for _, w := range r.Workers {
		if len(all) == drawnWorkers {
			break
		}
		if !slices.Contains(all, w.Worker) {
			all = append(all, w.Worker)
		}
	}
	slices.SortFunc(all, func(a, b localise.Worker) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	return all
}
