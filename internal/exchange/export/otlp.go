package export

import (
	"database/sql"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// fullFrames are a stack's frames, given root first, leaf first with what else is known.
func fullFrames(frames []frame, kinds, modules, builds, offsets any) (all []symbolize.Frame) {
	k, _ := kinds.([]any)
	m, _ := modules.([]any)
	b, _ := builds.([]any)
	o, _ := offsets.([]any)
	for i := range frames {
		at := frames[len(frames)-1-i]
		f := symbolize.Frame{Function: at.Name, File: at.File, Line: int32(at.Line), Offset: -1}
		kind, _ := k[i].(string)
		f.Kind = symbolize.Kind(kind)
		f.Module, _ = m[i].(string)
		f.BuildID, _ = b[i].(string)
		if n, ok := o[i].(int64); ok {
			f.Offset = n
		}
		all = append(all, f)
	}
	return all
}

// otlpNames are what samples of OTLP count, by GroupBy.
var otlpNames = map[string]string{"wait": "off_cpu"}

// otlp writes one request: what an exporter would send, not compressed.
func (s *stream) otlp(w io.Writer, all []stack, by string) error {
	var job, host string
	err := s.db.Row(s.ctx, `SELECT coalesce((SELECT any_value(job_id) FROM process HAVING count(DISTINCT job_id) = 1), 'unknown_service'),
		coalesce((SELECT any_value(host) FROM session HAVING count(DISTINCT host) = 1), '')`, nil, &job, &host)
	if err != nil {
		return err
	}
	b := otlp.NewBuilder(version.Version)
	of := []otlp.Attribute{{Key: "service.name", Value: job}}
	if host != "" {
		of = append(of, otlp.Attribute{Key: "host.name", Value: host})
	}
	if s.lastNS == 0 { // a recording of samples alone
		var first, last sql.NullInt64
		if err := s.db.Row(s.ctx, "SELECT min(ts_ns), max(ts_ns + weight_ns) FROM sample", nil, &first, &last); err != nil {
			return err
		}
		s.firstNS, s.lastNS = first.Int64, last.Int64
	}
	kind := otlp.Value{Name: by, Unit: "nanoseconds"}
	if name, ok := otlpNames[by]; ok {
		kind.Name = name
	}
	p := b.Resource(of...).Profile(kind, s.firstNS, s.lastNS-s.firstNS, otlp.Value{}, 0)
	for i := range all {
		p.Add(all[i].full, all[i].ns)
	}
	content, err := b.Marshal()
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("writing profiles: %w", err)
	}
	return nil
}
