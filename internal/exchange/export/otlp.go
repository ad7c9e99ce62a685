package export

import (
	"database/sql"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

var otlpFormat = Format{
	Name: "otlp", Kind: Sums, Help: "collectors of OpenTelemetry's profiles (in development)", write: (*stream).otlp,
}

// otlp writes one request: what an exporter would send, not compressed.
func (s *stream) otlp(w io.Writer) error {
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
	kind := otlp.Value{Name: s.sums.group.otlp, Unit: "nanoseconds"}
	p := b.Resource(of...).Profile(kind, s.firstNS, s.lastNS-s.firstNS, otlp.Value{}, 0)
	for _, x := range s.sums.profile {
		frames := make([]symbolize.Frame, len(x.Frames))
		for i, f := range x.Frames {
			frames[i] = f.Frame
		}
		p.Add(frames, x.WeightNS)
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
