package page

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	uploads "github.com/ebpfprof/ebpfprof/internal/fleet/source"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// ranks are the workers of a job and their steps: what the job map draws.
type ranks struct {
	job     string
	baseNS  int64
	spanNS  int64
	numbers [2]int64 // of the first and after the last step
	longest float32  // period, ns
	workers []worker
	orders  map[string][]int // of the workers, by what they are sorted by
	left    int64            // earlier steps that were not read
}

type worker struct {
	host    string
	pid     int32
	rank    int32 // -1 without one
	steps   []mapStep
	ownNS   float64 // mean time of a step without waits for peers
	waiting float64 // mean share
	loading float64 // likewise, -1 where the loader is not recorded
}

// mapStep is a step of a worker. Shares are of its period.
type mapStep struct {
	begin  int64 // from the base
	period float32
	wait   float32
	load   float32 // -1 where the loader is not recorded
	number uint32
	off    uint8 // how far its own time is from the median of all workers' then, as a cell
}

// mostMapSteps are kept, the latest: 10,000 ranks have 400 each.
const mostMapSteps = 4_000_000

// readRanks reads the steps of a job from a fleet's store, or of all processes of a dataset.
func (s *edition) readRanks(ctx context.Context, job string) (*ranks, error) {
	m := &ranks{job: job}
	err := s.query(ctx, func(ctx context.Context, db *dataset.DB) error {
		if len(db.Files("worker_step")) > 0 {
			return m.fromStore(ctx, db)
		}
		return m.fromDataset(ctx, db)
	})
	if err != nil {
		return nil, err
	}
	if p, err := s.pyramid(ctx); err == nil && p.Base() > 0 {
		m.baseNS = p.Base() // the timeline's, so that a step leads to its place there
	}
	m.finish()
	return m, nil
}

func (m *ranks) fromStore(ctx context.Context, db *dataset.DB) error {
	var all int64
	if err := db.Row(ctx, "SELECT count(*) FROM worker_step WHERE job = $1", []any{m.job}, &all); err != nil {
		return err
	}
	m.left = max(0, all-mostMapSteps)
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT host, pid, coalesce(rank, -1), number, begin_ns, period_ns, wait_ns, coalesce(load_ns, -1)
		FROM (SELECT * FROM worker_step WHERE job = $1 ORDER BY begin_ns DESC LIMIT %d) ORDER BY 3, 1, 2, begin_ns`, mostMapSteps), m.job)
	if err != nil {
		return err
	}
	defer rows.Close()
	var host sql.RawBytes
	for rows.Next() {
		var of worker
		var s rawStep
		if err := rows.Scan(&host, &of.pid, &of.rank, &s.number, &s.begin, &s.period, &s.wait, &s.load); err != nil {
			return err
		}
		m.add(string(host), of.pid, of.rank, s)
	}
	return rows.Err()
}

func (m *ranks) fromDataset(ctx context.Context, db *dataset.DB) error {
	hosts := map[int32]string{}
	rows, err := db.Query(ctx, "SELECT pid, any_value(coalesce(host, '')) FROM process JOIN session USING (session_id) GROUP BY pid")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var pid int32
		var host string
		if err := rows.Scan(&pid, &host); err != nil {
			return err
		}
		hosts[pid] = host
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rows.Close()
	steps, err := uploads.Steps(ctx, db)
	if err != nil {
		return err
	}
	m.left = int64(max(0, len(steps)-mostMapSteps))
	for _, st := range steps[m.left:] {
		m.add(hosts[st.PID], st.PID, st.Rank, rawStep{st.Number, st.BeginNS, st.PeriodNS, st.WaitNS, st.LoadNS})
	}
	return nil
}

// rawStep is a step as a table has it.
type rawStep struct{ number, begin, period, wait, load int64 }

// add takes the next step; those of a worker follow one another.
func (m *ranks) add(host string, pid, rank int32, s rawStep) {
	if s.period <= 0 || s.number < 0 || s.number > math.MaxUint32-1 {
		return // anybody may have written it
	}
	n := len(m.workers)
	if n == 0 || m.workers[n-1].pid != pid || m.workers[n-1].rank != rank || m.workers[n-1].host != host {
		m.workers = append(m.workers, worker{host: strings.Clone(host), pid: pid, rank: rank})
		n++
	}
	share := func(part int64) float32 { return float32(min(1, max(0, float64(part)/float64(s.period)))) }
	st := mapStep{begin: s.begin, period: float32(s.period), wait: share(s.wait), load: share(s.load), number: uint32(s.number)}
	if s.load < 0 {
		st.load = -1
	}
	m.workers[n-1].steps = append(m.workers[n-1].steps, st)
}

// finish computes what needs all steps.
func (m *ranks) finish() {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	m.numbers = [2]int64{math.MaxInt64, 0}
	for i := range m.workers {
		w := &m.workers[i]
		slices.SortFunc(w.steps, func(a, b mapStep) int { return cmp.Compare(a.begin, b.begin) })
		w.sum()
		for _, s := range w.steps {
			first, last = min(first, s.begin), max(last, s.begin+int64(s.period))
			m.numbers = [2]int64{min(m.numbers[0], int64(s.number)), max(m.numbers[1], int64(s.number)+1)}
			m.longest = max(m.longest, s.period)
		}
	}
	if len(m.workers) == 0 {
		m.numbers, m.orders = [2]int64{}, map[string][]int{}
		return
	}
	if m.baseNS == 0 || m.baseNS > first {
		m.baseNS = first
	}
	m.spanNS = last - m.baseNS
	for i := range m.workers {
		for k := range m.workers[i].steps {
			m.workers[i].steps[k].begin -= m.baseNS
		}
	}
	m.compare()
	m.sort()
}

// sum takes the means.
func (w *worker) sum() {
	n := float64(len(w.steps))
	for _, s := range w.steps {
		w.ownNS += float64(s.own()) / n
		w.waiting += float64(s.wait) / n
		w.loading += float64(max(s.load, 0)) / n
	}
	if w.steps[0].load < 0 {
		w.loading = -1
	}
}

// own is a step's time without the waits for peers, which are as long as the slowest of them makes them.
func (s mapStep) own() float32 { return s.period * (1 - s.wait) }

// stretches are what the recording is divided into: a step is compared with all workers' of its stretch.
const stretches = 512

func (m *ranks) compare() {
	at := func(s mapStep) int { return int(min(stretches-1, max(0, s.begin*stretches/max(m.spanNS, 1)))) }
	if m.spanNS > math.MaxInt64/stretches { // times of no clock
		at = func(mapStep) int { return 0 }
	}
	var owns [stretches][]float32
	for i := range m.workers {
		for _, s := range m.workers[i].steps {
			owns[at(s)] = append(owns[at(s)], s.own())
		}
	}
	var medians [stretches]float32
	for i := range owns {
		if len(owns[i]) > 0 {
			slices.Sort(owns[i])
			medians[i] = owns[i][len(owns[i])/2]
		}
		owns[i] = nil
	}
	for i := range m.workers {
		for k := range m.workers[i].steps {
			s := &m.workers[i].steps[k]
			s.off = offCell(s.own(), medians[at(*s)])
		}
	}
}

// offCell is how far a time is from the median: 127 is none, 254 twice as long or longer, 0 half as long or shorter.
func offCell(own, median float32) uint8 {
	if own <= 0 || median <= 0 {
		return 0
	}
	return uint8(math.Round(127 + 127*min(1, max(-1, math.Log2(float64(own/median))))))
}

func (m *ranks) sort() {
	by := func(compare func(a, b *worker) int) []int {
		order := make([]int, len(m.workers))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return compare(&m.workers[a], &m.workers[b]) })
		return order
	}
	m.orders = map[string][]int{
		"rank": by(func(a, b *worker) int { return cmp.Compare(a.rank, b.rank) }),
		"host": by(func(a, b *worker) int { return cmp.Compare(a.host, b.host) }),
		"slow": by(func(a, b *worker) int { return cmp.Compare(b.ownNS, a.ownNS) }),
	}
}

// jobs are those of a store, the one with the newest step first.
func jobs(ctx context.Context, db *dataset.DB) ([]string, error) {
	if len(db.Files("worker_step")) == 0 {
		return nil, nil
	}
	rows, err := db.Query(ctx, "SELECT job FROM worker_step GROUP BY job ORDER BY max(begin_ns) DESC LIMIT 200")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var job string
		if err := rows.Scan(&job); err != nil {
			return nil, err
		}
		all = append(all, job)
	}
	return all, rows.Err()
}

// title is what a worker is called on the page.
func (w *worker) title() string {
	if w.rank >= 0 {
		return fmt.Sprintf("rank %d", w.rank)
	}
	return printable.Short(fmt.Sprintf("%s %d", w.host, w.pid))
}
