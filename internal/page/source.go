package page

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// sourceFile is a row of /api/files: a file of the job's code and the time in it and below.
type sourceFile struct {
	File   string `json:"file"`
	CPUNS  int64  `json:"cpu_ns"`
	WaitNS int64  `json:"wait_ns"`
}

const mostFiles = 300

// ofFiles adds up samples by stack, with the frames of Python that have a line.
const ofFiles = `weights AS (SELECT session_id, stack_id, coalesce(sum(weight_ns) FILTER (state = 'on_cpu'), 0) AS cpu,
		coalesce(sum(weight_ns) FILTER (state = 'off_cpu'), 0) AS wait FROM sample WHERE stack_id IS NOT NULL GROUP BY ALL),
	unnested AS (SELECT session_id, stack_id, unnest(frames) AS f FROM stack SEMI JOIN weights USING (session_id, stack_id)),
	framed AS (SELECT session_id, stack_id, f.file AS file, f.line AS line, f."function" AS fn FROM unnested
		WHERE f.kind = 'python' AND f.file IS NOT NULL AND f.line IS NOT NULL)`

func (s *edition) sources(r *http.Request) (any, error) {
	all := []sourceFile{}
	err := s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		rows, err := db.Query(ctx, fmt.Sprintf(`WITH %s SELECT file, sum(cpu)::BIGINT, sum(wait)::BIGINT
			FROM (SELECT DISTINCT session_id, stack_id, file FROM framed) JOIN weights USING (session_id, stack_id)
			GROUP BY ALL ORDER BY sum(cpu) + sum(wait) DESC, file LIMIT %d`, ofFiles, mostFiles))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f sourceFile
			if err := rows.Scan(&f.File, &f.CPUNS, &f.WaitNS); err != nil {
				return err
			}
			if f.File == printable.Text(f.File) { // what is asked for by its name has to have one
				all = append(all, f)
			}
		}
		return rows.Err()
	})
	return all, err
}

// source is /api/source: a file's text, if it can be read, and the time of its lines.
type source struct {
	File    string     `json:"file"`
	Text    []string   `json:"text"`    // lines; empty if the file cannot be read
	Why     string     `json:"why"`     // then
	Changed bool       `json:"changed"` // the file is newer than the recording: lines may have moved
	TotalNS int64      `json:"total_ns"`
	Lines   []heatLine `json:"lines"`
	SQL     string     `json:"sql"`
}

// heatLine is the time in a line and in what it calls; of a stack that has it several times it counts once.
type heatLine struct {
	Line     int64  `json:"line"`
	Function string `json:"function"`
	CPUNS    int64  `json:"cpu_ns"`
	WaitNS   int64  `json:"wait_ns"`
}

func (s *edition) source(r *http.Request) (any, error) {
	file := r.URL.Query().Get("file")
	if file == "" {
		return nil, badRequest("give a file")
	}
	d := source{File: printable.Text(file), Text: []string{}, Lines: []heatLine{}}
	d.SQL = fmt.Sprintf(`WITH %s SELECT line, any_value(fn), sum(cpu)::BIGINT AS cpu_ns, sum(wait)::BIGINT AS wait_ns
	FROM (SELECT session_id, stack_id, line, min(fn) AS fn FROM framed WHERE file = %s GROUP BY ALL) JOIN weights USING (session_id, stack_id)
	GROUP BY line ORDER BY line`, ofFiles, literal(file))
	var host sql.NullString
	var started sql.NullInt64
	err := s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		if err := db.Row(ctx, "SELECT any_value(host), min(started_ns) FROM session", nil, &host, &started); err != nil {
			return err
		}
		if err := db.Row(ctx, "SELECT coalesce(sum(weight_ns), 0)::BIGINT FROM sample", nil, &d.TotalNS); err != nil {
			return err
		}
		return d.read(ctx, db)
	})
	if err != nil {
		return nil, err
	}
	if len(d.Lines) == 0 {
		return nil, notFound("no sample has a line of %s", printable.Short(file))
	}
	text, changed, err := s.open(file, host.String)
	if err != nil {
		d.Why = printable.Text(err.Error())
		return d, nil
	}
	d.Changed = started.Valid && changed.UnixNano() > started.Int64
	for line := range strings.SplitSeq(text, "\n") {
		d.Text = append(d.Text, printable.Text(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")))
	}
	return d, nil
}

func (d *source) read(ctx context.Context, db *dataset.DB) error {
	rows, err := db.Query(ctx, d.SQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l heatLine
		var function sql.NullString
		if err := rows.Scan(&l.Line, &function, &l.CPUNS, &l.WaitNS); err != nil {
			return err
		}
		l.Function = printable.Short(function.String)
		d.Lines = append(d.Lines, l)
	}
	return rows.Err()
}

const mostSource = 2 << 20

// isSource are names that code has: a dataset may be anyone's, and name any file as one of its stacks'.
var isSource = []string{".py", ".pyx", ".pyi"}

// open reads a source file that a stack names: on the machine of the recording its own path, and what lies in the
// directory of Options.Source under the end of that path.
func (s *edition) open(file, host string) (text string, changed time.Time, err error) {
	if !slices.Contains(isSource, filepath.Ext(file)) {
		return "", changed, errors.New("only Python files are shown")
	}
	clean := filepath.Clean(file)
	if s.options.Source != "" {
		parts := strings.Split(strings.TrimPrefix(clean, "/"), "/")
		for i := range parts {
			text, changed, err = readBelow(s.options.Source, filepath.Join(parts[i:]...))
			if err == nil || !errors.Is(err, fs.ErrNotExist) {
				return text, changed, err
			}
		}
	}
	if own, _ := os.Hostname(); host == "" || host != own {
		return "", changed, fmt.Errorf("the recording is of another machine: ebpfprof serve --source DIR looks for its files in DIR")
	}
	if !filepath.IsAbs(clean) {
		return "", changed, fmt.Errorf("the recording has no absolute path of it: ebpfprof serve --source DIR looks for it in DIR")
	}
	return readBelow(filepath.Dir(clean), filepath.Base(clean))
}

// readBelow reads a regular file in a directory, which it does not leave by a link.
func readBelow(dir, name string) (text string, changed time.Time, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", changed, err
	}
	defer root.Close()
	info, err := root.Stat(name) // before it is opened: a FIFO would wait for a writer
	if err != nil {
		return "", changed, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostSource {
		return "", changed, fmt.Errorf("%s is no regular file of 2 MiB at most", name)
	}
	file, err := root.Open(name)
	if err != nil {
		return "", changed, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostSource))
	if err != nil {
		return "", changed, err
	}
	if !utf8.Valid(content) {
		return "", changed, fmt.Errorf("%s is not text", name)
	}
	return string(content), info.ModTime(), nil
}
