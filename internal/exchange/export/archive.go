package export

import (
	"archive/tar"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// member is one rank of one recording, a file of the archive.
type member struct {
	file    string // its name in the archive
	session string
	rank    sql.NullInt32 // of the processes that have none: not valid
	spans   int64
	host    string
	boot    string
	offset  int64 // session.clock_offset_ns
}

func (m member) machine() string {
	if m.host == "" {
		return m.session
	}
	return m.host
}

// where chooses the member's rows.
func (m member) where() string {
	ranked := fmt.Sprintf("SELECT pid FROM process WHERE session_id = %s AND rank", sqlText(m.session))
	if !m.rank.Valid {
		return fmt.Sprintf("session_id = %s AND pid NOT IN (%s IS NOT NULL)", sqlText(m.session), ranked)
	}
	return fmt.Sprintf("session_id = %s AND pid IN (%s = %d)", sqlText(m.session), ranked, m.rank.Int32)
}

// apart is what has to be added to the member's times so that they are on the clock of
// another's, and whether that was measured: on one boot of a kernel both stand on its
// monotonic clock, else each on the time that its host believed in.
func (m member) apart(reference member) (ns int64, measured bool) {
	if m.boot == "" || m.boot != reference.boot {
		return 0, m.session == reference.session
	}
	return reference.offset - m.offset, true
}

// manifest is what Perfetto reads of an archive first.
// https://perfetto.dev/docs/reference/perfetto-manifest (version 1)
type manifest struct {
	Version int            `json:"version"`
	Time    manifestClock  `json:"trace_time"`
	Files   []manifestFile `json:"files"`
}

type manifestClock struct {
	File  string `json:"file"`
	Clock string `json:"clock"`
}

type manifestFile struct {
	Path    string            `json:"path"`
	Machine map[string]string `json:"machine"`
	Clocks  *manifestRelation `json:"clocks,omitempty"`
}

// manifestRelation says that a clock of the file and one of another are the same, but
// for an offset that is added to the file's.
type manifestRelation struct {
	Clock  string        `json:"clock"`
	Is     manifestClock `json:"is"`
	Offset int64         `json:"offset_ns"`
}

// traceClock is what begin says of each packet.
const traceClock = "BOOTTIME"

func manifestOf(members []member) manifest {
	first := manifestClock{members[0].file, traceClock}
	all := manifest{Version: 1, Time: first}
	for i, m := range members {
		file := manifestFile{Path: m.file, Machine: map[string]string{"name": m.machine()}}
		if i > 0 {
			offset, _ := m.apart(members[0])
			file.Clocks = &manifestRelation{traceClock, first, offset}
		}
		all.Files = append(all.Files, file)
	}
	return all
}

// Archived is the format of the traces in an archive.
const Archived = "perfetto"

// WriteArchive writes a tar of Perfetto traces, one of each rank, with a manifest that
// puts their clocks together: ui.perfetto.dev opens it as one.
func WriteArchive(ctx context.Context, db *dataset.DB, w io.Writer, o Options) (*Result, error) {
	members, err := members(ctx, db, o.Rank)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(map[string]manifest{"perfetto_manifest": manifestOf(members)}, "", " ")
	if err != nil {
		return nil, err
	}
	out, total := tar.NewWriter(w), &Result{}
	if err := add(out, "perfetto_manifest.json", int64(len(text)), bytes.NewReader(text)); err != nil {
		return nil, err
	}
	guessed := map[string]bool{}
	for i, m := range members {
		own := o
		own.MaxBytes = o.MaxBytes / int64(len(members))
		if o.Progress != nil {
			own.Progress = func(part float64) { o.Progress((float64(i) + part) / float64(len(members))) }
		}
		r, err := m.write(ctx, db, out, own)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.file, err)
		}
		total.Spans, total.Slices = total.Spans+r.Spans, total.Slices+r.Slices
		for _, left := range r.LeftOut {
			total.LeftOut = append(total.LeftOut, m.file+": "+left)
		}
		if _, measured := m.apart(members[0]); !measured {
			guessed[m.machine()] = true
		}
	}
	total.leave(int64(len(guessed)),
		"hosts have a clock that was not compared with the first host's: their times are unadjusted")
	return total, out.Close()
}

// members that have rows, in order of their ranks.
func members(ctx context.Context, db *dataset.DB, rank *int) (all []member, err error) {
	only := "true"
	if rank != nil {
		only = fmt.Sprintf("p.rank = %d", *rank)
	}
	rows, err := db.Query(ctx, `SELECT x.session_id, p.rank, count(*), coalesce(any_value(s.host), ''),
			coalesce(any_value(s.boot_id), ''), coalesce(any_value(s.clock_offset_ns), 0)
		FROM span x LEFT JOIN (SELECT session_id, pid, max(rank) AS rank FROM process GROUP BY ALL) p USING (session_id, pid)
		LEFT JOIN session s USING (session_id) WHERE `+only+` GROUP BY 1, 2 ORDER BY p.rank NULLS LAST, x.session_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m member
		if err := rows.Scan(&m.session, &m.rank, &m.spans, &m.host, &m.boot, &m.offset); err != nil {
			return nil, err
		}
		// A session's name comes out of a file: it is no name for another.
		m.file = "no-rank"
		if m.rank.Valid {
			m.file = fmt.Sprintf("rank-%05d", m.rank.Int32)
		}
		if m.file += ".pftrace"; slices.ContainsFunc(all, func(other member) bool { return other.file == m.file }) {
			m.file = fmt.Sprintf("%s-%d.pftrace", strings.TrimSuffix(m.file, ".pftrace"), len(all)+1)
		}
		all = append(all, m)
	}
	if len(all) == 0 && rows.Err() == nil {
		return nil, fmt.Errorf("there are no spans to export")
	}
	return all, rows.Err()
}

// write puts the member's trace into a file first: a tar says the size before.
func (m member) write(ctx context.Context, db *dataset.DB, out *tar.Writer, o Options) (*Result, error) {
	file, err := os.CreateTemp("", "ebpfprof-export-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	s := &stream{ctx: ctx, db: db, options: o, result: &Result{}}
	if err := s.chooseWhere(m.where()); err != nil {
		return nil, err
	}
	if err := s.perfetto(file); err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	return s.result, add(out, m.file, size, file)
}

func add(out *tar.Writer, name string, size int64, contents io.Reader) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := io.Copy(out, contents)
	return err
}

func sqlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
