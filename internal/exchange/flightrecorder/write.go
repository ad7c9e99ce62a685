package flightrecorder

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
)

// write writes a rank's dump to a file, which is there whole or not at all.
func (r *rankDump) write(name string) (err error) {
	part := name + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	p := pickle.NewWriter(f)
	r.dump(p)
	if err = errors.Join(p.Close(), f.Close()); err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// text makes of a job's name what Python can decode.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func (r *rankDump) dump(p *pickle.Writer) {
	p.Dict()
	p.Text("version")
	p.Text(version)
	p.Text("pg_config")
	p.Dict()
	for _, g := range r.groups {
		if !g.known {
			continue
		}
		p.Text(text(g.name))
		p.Dict()
		pairs(p, "name", text(g.name), "desc", text(g.description), "ranks", strings.ReplaceAll(fmt.Sprint(g.ranks), " ", ", "))
		p.EndDict()
	}
	p.EndDict()
	p.Text("entries")
	p.List()
	for i := range r.entries {
		r.entries[i].dump(p, int64(i))
	}
	p.EndList()
	p.Text("ebpfprof")
	p.Dict()
	pairs(p, "host", text(r.host))
	p.Text("pid")
	p.Int(r.pid)
	p.Text("left_out")
	p.Int(int64(r.leftOut))
	if r.lost != nil {
		p.Text("lost_rows")
		p.Int(r.lost.Rows)
		p.Text("last_lost_ns")
		p.Int(r.lost.LastNS)
		pairs(p, "last_lost", text(r.lost.Last))
	}
	p.EndDict()
	p.EndDict()
}

func pairs(p *pickle.Writer, keysAndValues ...string) {
	for _, s := range keysAndValues {
		p.Text(s)
	}
}

func (e *entry) dump(p *pickle.Writer, record int64) {
	number := func(key string, n int64) {
		p.Text(key)
		p.Int(n)
	}
	p.Dict()
	number("record_id", record)
	number("pg_id", 0)
	p.Text("process_group")
	p.List()
	pairs(p, text(e.group.name), text(e.group.description))
	p.EndList()
	number("collective_seq_id", e.number)
	number("p2p_seq_id", 0)
	number("op_id", e.number)
	pairs(p, "profiling_name", text(e.name), "state", e.state())
	number("time_created_ns", e.created)
	when := func(key string, at sql.NullInt64) {
		p.Text(key)
		if !at.Valid {
			p.None()
			return
		}
		p.Int(at.Int64)
	}
	when("time_discovered_started_ns", e.started)
	when("time_discovered_completed_ns", e.completed)
	for _, side := range []struct {
		name  string
		sizes [][]int64
	}{{"input", e.in}, {"output", e.out}} {
		p.Text(side.name + "_sizes")
		p.List()
		for _, size := range side.sizes {
			p.List()
			for _, n := range size {
				p.Int(n)
			}
			p.EndList()
		}
		p.EndList()
		p.Text(side.name + "_dtypes")
		p.List()
		if e.dtype != "" {
			for range side.sizes {
				p.Text(text(e.dtype))
			}
		}
		p.EndList()
	}
	p.Text("retired")
	p.Bool(e.state() == "completed")
	p.Text("is_p2p")
	p.Bool(false)
	p.Text("frames")
	p.List()
	for _, f := range e.frames {
		p.Dict()
		pairs(p, "name", text(f.Name), "filename", text(f.Filename))
		number("line", f.Line)
		p.EndDict()
	}
	p.EndList()
	p.EndDict()
}

// WriteText says what was written, and which options the analyser needs.
func (w *Written) WriteText(to io.Writer) error {
	text := fmt.Sprintf("%d collectives of %d ranks in %s\n", w.Entries, len(w.Ranks), filepath.Dir(w.Files[0]))
	if w.LeftOut > 0 {
		text += fmt.Sprintf("%d are not in there: of kinds or groups that its reader does not know, or from before all ranks were recorded\n",
			w.LeftOut)
	}
	if len(w.Missing) > 0 {
		text += fmt.Sprintf("no process of this recording is rank %s: fr_trace takes that with --allow-incomplete-ranks\n",
			strings.Trim(fmt.Sprint(w.Missing), "[]"))
	}
	_, err := io.WriteString(to, text)
	return err
}
