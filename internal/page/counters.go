package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// counterLane is a row of /api/counters: a counter of a device.
type counterLane struct {
	Number int      `json:"number"`
	Source string   `json:"source"`
	Name   string   `json:"name"`
	Device string   `json:"device"`
	Scope  string   `json:"scope"`
	Kind   string   `json:"kind"`
	Unit   string   `json:"unit"`
	Rows   int64    `json:"rows"`
	Least  *float64 `json:"least"`
	Most   *float64 `json:"most"`
	key    string   // the condition that chooses its rows
}

// foundCounters are the recording's counters, found once.
type foundCounters struct {
	mu    sync.Mutex
	known bool
	all   []counterLane
}

// mostCounters are listed: those of more sources than a page can show.
const mostCounters = 2000

// findCounters lists the counters, those that change first.
func (s *edition) findCounters(ctx context.Context, db *dataset.DB) ([]counterLane, error) {
	c := &s.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return c.all, nil
	}
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT source, name, coalesce(device, ''), device_id, coalesce(scope, ''), kind, unit, pid,
			count(*), min(value), max(value)
		FROM counter GROUP BY source, name, device, device_id, scope, kind, unit, pid
		ORDER BY source, min(value) = max(value), name, device, device_id, scope, pid LIMIT %d`, mostCounters))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []counterLane{}
	for rows.Next() {
		l := counterLane{Number: len(all)}
		var device, pid *int32
		if err := rows.Scan(&l.Source, &l.Name, &l.Device, &device, &l.Scope, &l.Kind, &l.Unit, &pid, &l.Rows, &l.Least, &l.Most); err != nil {
			return nil, err
		}
		l.key = fmt.Sprintf("source = %s AND name = %s AND coalesce(device, '') = %s AND coalesce(scope, '') = %s AND kind = %s AND unit = %s"+
			" AND %s AND %s", literal(l.Source), literal(l.Name), literal(l.Device), literal(l.Scope), literal(l.Kind), literal(l.Unit),
			isNumber("device_id", device), isNumber("pid", pid))
		if device != nil && l.Device == "" {
			l.Device = fmt.Sprintf("device %d", *device)
		}
		if pid != nil {
			l.Device = strings.TrimSpace(fmt.Sprintf("%s pid %d", l.Device, *pid))
		}
		for _, text := range []*string{&l.Source, &l.Name, &l.Device, &l.Scope, &l.Kind, &l.Unit} {
			*text = printable.Short(*text)
		}
		all = append(all, l)
	}
	c.all, c.known = all, rows.Err() == nil
	return all, rows.Err()
}

func isNumber(column string, n *int32) string {
	if n == nil {
		return column + " IS NULL"
	}
	return fmt.Sprintf("%s = %d", column, *n)
}

func (s *edition) counters(r *http.Request) (any, error) {
	var all []counterLane
	err := s.query(r.Context(), func(ctx context.Context, db *dataset.DB) (err error) {
		all, err = s.findCounters(ctx, db)
		return err
	})
	return all, err
}

// readings is /api/readings: the values of some counters in a window, least and most of each bin.
type readings struct {
	BinNS int64     `json:"bin_ns"`
	Bins  []reading `json:"bins"`
	SQL   string    `json:"sql"`
}

type reading struct {
	Counter int     `json:"c"`
	AtNS    int64   `json:"at"` // when it was read last in the bin
	Least   float64 `json:"lo"`
	Most    float64 `json:"hi"`
}

const mostReadings = 20_000

func (s *edition) readings(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	w, err := window(r) // its lanes are numbers of counters
	if err != nil {
		return nil, err
	}
	d := readings{Bins: []reading{}}
	if len(w.Lanes) == 0 {
		return d, nil
	}
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		all, err := s.findCounters(ctx, db)
		if err != nil {
			return err
		}
		var chosen []string
		for _, n := range w.Lanes {
			if n < len(all) {
				chosen = append(chosen, fmt.Sprintf("SELECT %d AS c, ts_ns, value FROM counter WHERE %s", n, all[n].key))
			}
		}
		if len(chosen) == 0 {
			return notFound("there are %d counters", len(all))
		}
		for level := w.Level; ; level++ {
			d.BinNS, d.Bins = pyramid.Width(level), d.Bins[:0]
			// One reading before the window and one behind it, so that lines do not end at its edges.
			d.SQL = fmt.Sprintf(`SELECT c, (ts_ns - %[1]d) // %[2]d AS bin, max(ts_ns) - %[1]d, min(value), max(value) FROM (%[3]s)
				WHERE ts_ns BETWEEN %[4]d AND %[5]d GROUP BY ALL ORDER BY 1, 3 LIMIT %[6]d`, p.Base(), d.BinNS, strings.Join(chosen, " UNION ALL "),
				p.Base()+w.From-2e9, p.Base()+w.Until+2e9, mostReadings+1)
			if err := d.read(ctx, db); err != nil {
				return err
			}
			if len(d.Bins) <= mostReadings || level == pyramid.Levels-1 {
				return nil
			}
		}
	})
	return d, err
}

func (d *readings) read(ctx context.Context, db *dataset.DB) error {
	rows, err := db.Query(ctx, d.SQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var v reading
		var bin int64
		if err := rows.Scan(&v.Counter, &bin, &v.AtNS, &v.Least, &v.Most); err != nil {
			return err
		}
		d.Bins = append(d.Bins, v)
	}
	return rows.Err()
}
