package analysis

import (
	"context"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/snapshot"
)

// Export writes a memory snapshot that PyTorch's viewer opens, an arena a device,
// up to the end of the recording or, atPeak, to each arena's peak.
func (m *Memory) Export(ctx context.Context, w io.Writer, atPeak bool) error {
	var devices []snapshot.Device
	for _, a := range m.Arenas {
		paths := map[int64]bool{}
		for i := range a.lives.Blocks {
			paths[a.lives.Blocks[i].Path] = true
		}
		delete(paths, 0)
		found, err := m.origin.Paths(ctx, a.Session, keys(paths))
		if err != nil {
			return err
		}
		devices = append(devices, snapshot.Device{Lives: a.lives, Paths: found})
	}
	return snapshot.Write(w, devices, func(l *blocks.Lives) int64 {
		if atPeak {
			return l.PeakTick
		}
		return l.Ticks
	})
}
