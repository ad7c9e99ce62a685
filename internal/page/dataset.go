package page

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/output"
)

// fingerprint is the same as long as no file of the dataset is added, removed or changed.
func fingerprint(db *dataset.DB) string {
	sum := sha256.New()
	for _, t := range output.Schema() {
		for _, path := range db.Files(t.Name) {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// listed is the same as long as no file is added to a table.
func listed(db *dataset.DB) string {
	sum := sha256.New()
	for _, t := range output.Schema() {
		dirs := map[string]bool{filepath.Join(db.Root(), t.Name): true}
		for _, path := range db.Files(t.Name) {
			dirs[filepath.Dir(path)] = true
		}
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			entries, _ := os.ReadDir(dir)
			for _, entry := range entries {
				if !strings.HasPrefix(entry.Name(), ".") { // what is being written
					fmt.Fprintln(sum, dir, entry.Name())
				}
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// described is /api/dataset: what the frame of the page shows, from the small tables alone.
type described struct {
	Name        string    `json:"name"`
	Root        string    `json:"root"`
	Before      string    `json:"before"` // the dataset that it is compared with; "" for none
	Store       string    `json:"store"`  // the fleet's store that it is; "" for none
	Ranks       int       `json:"ranks"`  // processes with a rank
	Fingerprint string    `json:"fingerprint"`
	Tool        string    `json:"tool_version"`
	Source      string    `json:"source"`
	Host        string    `json:"host"`
	Started     string    `json:"started"`
	Edition     int64     `json:"edition"`
	Recording   bool      `json:"recording"`
	Warnings    []string  `json:"warnings"`
	Processes   []process `json:"processes"`
}

type process struct {
	Session string `json:"session"`
	PID     int32  `json:"pid"`
	Rank    *int32 `json:"rank"`
	Command string `json:"command"`
}

func (s *edition) describe(r *http.Request) (any, error) {
	d := described{
		Name: printable.Short(filepath.Base(s.root)), Root: printable.Text(s.root), Before: printable.Text(s.options.Before),
		Store: printable.Text(s.options.Store), Fingerprint: s.print, Tool: version.Version, Edition: s.number, Recording: s.recording,
		Warnings: []string{}, Processes: []process{},
	}
	if s.options.Store != "" {
		d.Name, d.Source = printable.Short(filepath.Base(s.options.Store)), "fleet's store"
	}
	for _, w := range s.base.Warnings() {
		d.Warnings = append(d.Warnings, printable.Text(w))
	}
	err := s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		var source, host, started sql.NullString
		err := db.Row(ctx, `SELECT any_value(source), any_value(host),
			strftime(make_timestamp_ns(min(nullif(started_ns, 0))), '%Y-%m-%d %H:%M:%S UTC') FROM session`, nil, &source, &host, &started)
		if err != nil {
			return err
		}
		if source.Valid {
			d.Source = printable.Short(source.String)
		}
		d.Host, d.Started = printable.Short(host.String), started.String
		rows, err := db.Query(ctx, "SELECT session_id, pid, rank, coalesce(command, exe, '') FROM process ORDER BY rank NULLS LAST, pid "+
			"LIMIT 10000")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p process
			if err := rows.Scan(&p.Session, &p.PID, &p.Rank, &p.Command); err != nil {
				return err
			}
			p.Command = printable.Short(p.Command)
			if p.Rank != nil {
				d.Ranks++
			}
			d.Processes = append(d.Processes, p)
		}
		return rows.Err()
	})
	return d, err
}

// query runs f on a dataset of the pool, within the time that a request has.
func (s *edition) query(ctx context.Context, f func(context.Context, *dataset.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	return s.pool.use(ctx, func(db *dataset.DB) error { return f(ctx, db) })
}
