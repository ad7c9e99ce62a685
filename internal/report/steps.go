package report

import (
	"fmt"
	"math"
)

// stepRow is one step on the training thread. A period is 0 where it is not
// known: of the last step.
type stepRow struct {
	sessionID       string
	pid, tid        int32
	beginNS, endNS  int64
	periodNS        int64
	number          int
	whole, training bool
}

// steps finds the repetitions of the loop: what the profiler's own schedule
// marked.
func (b *builder) steps() error {
	method := "ProfilerStep"
	err := b.each(`
		SELECT session_id, pid, tid, ts_ns, ts_ns + duration_ns, coalesce(lead(ts_ns) OVER (PARTITION BY session_id, pid, tid ORDER BY ts_ns) - ts_ns, 0)
		FROM rows WHERE layer = 'scope' AND name LIKE 'ProfilerStep#%' AND duration_ns > 0 ORDER BY 1, 2, 3, 4`, func(scan scan) error {
		s := stepRow{whole: true, training: true}
		err := scan(&s.sessionID, &s.pid, &s.tid, &s.beginNS, &s.endNS, &s.periodNS)
		s.number = len(b.stepRows)
		b.stepRows = append(b.stepRows, s)
		return err
	})
	if err != nil {
		return err
	}
	if len(b.stepRows) == 0 {
		b.untold("steps: nothing that repeats was found on any thread")
		return nil
	}
	b.report.Steps = summarize(b.stepRows, method)
	return nil
}

// summarize goes by periods; a last step that no other follows has its duration.
func summarize(rows []stepRow, method string) *Steps {
	s := &Steps{Count: len(rows), Method: method, PeriodMS: []float64{}}
	var mean, m2 float64
	n := 0.0
	for i, r := range rows {
		if r.whole {
			s.Whole++
		}
		period := r.periodNS
		if period <= 0 {
			period = r.endNS - r.beginNS
			if len(rows) > 1 { // its duration lacks the gap to the next
				continue
			}
		}
		v := ms(period)
		s.PeriodMS = append(s.PeriodMS, v)
		n++
		d := v - mean
		mean += d / n
		m2 += d * (v - mean)
		if v > s.Slowest.MS {
			s.Slowest = Slowest{i, v}
		}
	}
	s.MeanMS = mean
	if n > 1 {
		s.StddevMS = math.Sqrt(m2 / (n - 1))
	}
	return s
}

func (s *Steps) sentence() string {
	if s.Count == 1 {
		return fmt.Sprintf("1 step of %.2f ms", s.MeanMS)
	}
	return fmt.Sprintf("%d steps of %.2f ms ± %.2f ms, the slowest %.2f ms (step %d)", s.Count, s.MeanMS, s.StddevMS, s.Slowest.MS, s.Slowest.Index)
}
