package page

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// strips is /api/strips: when threads were on a CPU and waited, by their samples, and when calls were recorded at all.
type strips struct {
	BinNS    int64      `json:"bin_ns"`
	Bins     []stripBin `json:"bins"`
	Waits    []wait     `json:"waits"` // as long as a bin or longer
	Recorded []recorded `json:"recorded"`
}

// stripBin is what the samples of a bin represent: time on the CPU, and waits that are shorter than the bin.
type stripBin struct {
	Thread int   `json:"t"`
	AtNS   int64 `json:"at"`
	CPUNS  int64 `json:"cpu"`
	WaitNS int64 `json:"wait"`
}

type wait struct {
	Thread  int    `json:"t"`
	AtNS    int64  `json:"at"`
	NS      int64  `json:"ns"`
	ReadyNS int64  `json:"ready"` // of it, at its end: it could run and had no CPU
	Cause   string `json:"cause"`
	Syscall string `json:"syscall"`
	Waker   *int32 `json:"waker"`
}

// mostStrips are the bins and the waits of an answer; with more, bins are wider.
const mostStrips = 20_000

func (s *edition) strips(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	w, err := window(r)
	if err != nil {
		return nil, err
	}
	values, err := s.lanes.values(r.URL.Query().Get("threads"))
	if err != nil {
		return nil, err
	}
	d := strips{Bins: []stripBin{}, Waits: []wait{}, Recorded: []recorded{}}
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		all, err := s.recordedTimes(ctx, db)
		d.Recorded = inWindow(all, w)
		if err != nil || values == "" {
			return err
		}
		for level := w.Level; ; level++ {
			d.BinNS = pyramid.Width(level)
			fits, err := d.read(ctx, db, p.Base(), w, values)
			if err != nil || fits || level == pyramid.Levels-1 {
				return err
			}
		}
	})
	return d, err
}

// values lists threads, by their numbers, as rows of SQL.
func (l *lanes) values(text string) (string, error) {
	var rows []string
	for number := range strings.SplitSeq(text, ",") {
		if number == "" {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(l.keys) || len(rows) >= mostLanes {
			return "", badRequest("threads=%q: give the numbers of %d threads at most", printable.Short(text), mostLanes)
		}
		k := l.keys[n]
		rows = append(rows, fmt.Sprintf("(%d, %s, %d, %d)", n, literal(k.session), k.pid, k.tid))
	}
	return strings.Join(rows, ", "), nil
}

// read fills bins and waits; false if there are too many.
func (d *strips) read(ctx context.Context, db *dataset.DB, base int64, w pyramid.Window, values string) (fits bool, err error) {
	d.Bins, d.Waits = d.Bins[:0], d.Waits[:0]
	from, until := base+w.From/d.BinNS*d.BinNS, base+w.Until
	chosen := fmt.Sprintf(`WITH t(n, s, p, i) AS (VALUES %s), chosen AS (SELECT n, ts_ns, weight_ns, state, coalesce(ready_ns, 0) AS ready,
		coalesce(cause, '') AS cause, coalesce(syscall, '') AS syscall, waker_tid
		FROM sample JOIN t ON session_id = s AND pid = p AND tid = i WHERE ts_ns < %d AND ts_ns + weight_ns > %d)`, values, until, from)
	err = d.rows(ctx, db, fmt.Sprintf(`%s SELECT n, (ts_ns - %[2]d) // %[3]d * %[3]d AS at, coalesce(sum(weight_ns) FILTER (state = 'on_cpu'),
		0)::BIGINT,
		coalesce(sum(weight_ns) FILTER (state = 'off_cpu'), 0)::BIGINT
		FROM chosen WHERE ts_ns >= %[2]d AND (state = 'on_cpu' OR weight_ns < %[3]d) GROUP BY ALL
		ORDER BY ALL LIMIT %[4]d`, chosen, from, d.BinNS, mostStrips+1),
		func(scan func(...any) error) error {
			var b stripBin
			err := scan(&b.Thread, &b.AtNS, &b.CPUNS, &b.WaitNS)
			b.AtNS += from - base
			d.Bins = append(d.Bins, b)
			return err
		})
	if err != nil || len(d.Bins) > mostStrips {
		return false, err
	}
	err = d.rows(ctx, db, fmt.Sprintf(`%s SELECT n, ts_ns - %d, weight_ns, ready, cause, syscall, waker_tid FROM chosen
		WHERE state = 'off_cpu' AND weight_ns >= %d ORDER BY ALL LIMIT %d`, chosen, base, d.BinNS, mostStrips+1),
		func(scan func(...any) error) error {
			var x wait
			err := scan(&x.Thread, &x.AtNS, &x.NS, &x.ReadyNS, &x.Cause, &x.Syscall, &x.Waker)
			x.Cause, x.Syscall = printable.Short(x.Cause), printable.Short(x.Syscall)
			d.Waits = append(d.Waits, x)
			return err
		})
	return err == nil && len(d.Waits) <= mostStrips, err
}

// rows calls f for each row of a query.
func (d *strips) rows(ctx context.Context, db *dataset.DB, query string, f func(scan func(...any) error) error) error {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
