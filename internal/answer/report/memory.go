package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

const (
	memoryArenas = 8  // that the report tells of
	memoryOwners = 10 // of each
)

// memory tells the peaks and who held them, as `ebpfprof memory` does: what a
// peak is, is decided there.
func (b *builder) memory() error {
	ranks, err := b.ranked()
	if err != nil {
		return err
	}
	memory, err := analysis.Of(b.ctx, b.db, func(a blocks.Arena) bool {
		return ranks == nil || ranks[dataset.Process{Session: a.Session, PID: a.PID}]
	})
	switch {
	case errors.Is(err, source.ErrNoEvents), errors.Is(err, analysis.ErrNoSuchArena):
		b.untold("memory: no allocation was recorded%s", b.atLevel("record at --level window, or profile with profile_memory=True"))
		return nil
	case err != nil:
		return err
	}
	b.memories, b.report.OutOfMemory = memory, memory.OutOfMemory
	if len(memory.Arenas) == 0 {
		b.untold("memory: no allocation was recorded but the one that found no room%s", b.atLevel("record at --level window"))
	}
	for _, a := range memory.Arenas[:min(len(memory.Arenas), memoryArenas)] {
		m := Memory{PID: a.PID, Space: a.Space, DeviceID: a.Device, PeakBytes: a.PeakBytes, AtMS: ms(a.PeakNS - b.firstNS),
			Said: a.SaidBytes, Reserved: a.Fragmentation.RecordedReserved, AllocationUS: a.AllocationUS, FreeUS: a.FreeUS, Owners: []Owner{},
			Estimated: a.SlicedEvents > 0}
		for _, s := range a.Holders.ByLine[:min(len(a.Holders.ByLine), memoryOwners)] {
			m.Owners = append(m.Owners, Owner{Name: s.Key, Bytes: s.Bytes, Blocks: int64(s.Blocks)})
		}
		for _, p := range a.Curve {
			m.series = append(m.series, point{400 * float64(p.NS-b.firstNS) / max(float64(b.lastNS-b.firstNS), 1), float64(p.Max)})
		}
		b.report.Memory = append(b.report.Memory, m)
	}
	return nil
}

// atLevel is advice to record more, "" for a recording that was made at level window already.
func (b *builder) atLevel(advice string) string {
	var n int64
	if b.db.Row(b.ctx, "SELECT count(*) FROM session WHERE level IN ('window', 'deep') AND coalesce(source, 'recorded') = 'recorded'", nil,
		&n) == nil && n > 0 {
		return ""
	}
	return "; " + advice
}

// ranked are the processes of the rank that the options choose; nil are all.
func (b *builder) ranked() (map[dataset.Process]bool, error) {
	if b.options.Rank == nil {
		return nil, nil
	}
	rows, err := b.db.Query(b.ctx, "SELECT session_id, pid FROM process WHERE rank = ?", *b.options.Rank)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	chosen := map[dataset.Process]bool{}
	for rows.Next() {
		var p dataset.Process
		if err := rows.Scan(&p.Session, &p.PID); err != nil {
			return nil, err
		}
		chosen[p] = true
	}
	return chosen, rows.Err()
}

func (r *Report) memorySection() section {
	s := section{title: "Memory"}
	t := &table{header: []string{"who had it at the peak", "bytes", "blocks"}, left: []bool{true, false, false}, of: "of the peak"}
	for _, o := range r.OutOfMemory {
		s.note("out of memory: %s: %s", o.Sentence(), strings.Join(o.Details(), "; "))
	}
	for i, m := range r.Memory {
		where := m.Space
		if m.DeviceID != nil {
			where = fmt.Sprintf("%s %d", m.Space, *m.DeviceID)
		}
		text := fmt.Sprintf("pid %d, %s: peak %s, %s after the first row", m.PID, where, bytesText(float64(m.PeakBytes)), msText(m.AtMS))
		if m.Said != nil {
			text += fmt.Sprintf("; the allocator said %s", bytesText(float64(*m.Said)))
		}
		if m.Reserved != nil {
			text += fmt.Sprintf(", reserved %s", bytesText(float64(*m.Reserved)))
		}
		if m.Estimated {
			text += " (recorded in slices: an estimate from below)"
		}
		if m.AllocationUS != nil {
			text += fmt.Sprintf("; %s a step in allocations", msText(*m.AllocationUS/1e3))
		}
		if m.FreeUS != nil {
			text += fmt.Sprintf(", %s in frees", msText(*m.FreeUS/1e3))
		}
		s.note("%s", text)
		if i == 0 {
			for _, o := range m.Owners {
				t.rows = append(t.rows, []string{o.Name, bytesText(float64(o.Bytes)), fmt.Sprint(o.Blocks)})
				t.share = append(t.share, float64(o.Bytes)/max(float64(m.PeakBytes), 1))
			}
		}
	}
	s.table = t
	return s
}
