package page

import (
	"context"
	"net/http"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
)

// hang is /api/hang: `ebpfprof fleet hang DATASET --json`, byte for byte.
func (s *edition) hang(w http.ResponseWriter, r *http.Request) {
	s.once(w, r, "hang", func(ctx context.Context) (text []byte, err error) {
		err = s.pool.use(ctx, func(db *dataset.DB) error {
			report, err := evidence.Analyse(ctx, db)
			if err == nil {
				text, err = indented(report)
			}
			return err
		})
		return text, err
	})
}
