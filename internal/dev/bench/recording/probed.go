package recording

import (
	"context"
	"path/filepath"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// Probed is a running job's probes and where their rows go.
type Probed struct {
	*tracer.Trial
	sink  *Scratch
	ended bool
}

// Probe plans a running job's probes, of the groups named or of all.
func Probe(pid int, groups ...string) (*Probed, error) {
	return ProbeWith(tracer.Options{PIDs: []int{pid}, Filter: filter.OfGroups(groups...), Level: tracer.LevelWindow, Follow: true})
}

// ProbeLines is probe with the Python line behind every call, which comes with stacks.
// No wait is as long as would be recorded.
func ProbeLines(pid int, groups ...string) (*Probed, error) {
	return ProbeWith(tracer.Options{PIDs: []int{pid}, Filter: filter.OfGroups(groups...), Level: tracer.LevelWindow, Follow: true,
		OffCPU: 24 * time.Hour})
}

func ProbeWith(options tracer.Options) (*Probed, error) {
	sink, err := NewScratch()
	if err != nil {
		return nil, err
	}
	t, err := tracer.OpenTrial(context.Background(), options, sink)
	if err != nil {
		sink.Remove()
		return nil, err
	}
	return &Probed{t, sink, false}, nil
}

// End closes the dataset and reports how many bytes a span takes in it.
func (p *Probed) End() float64 { return p.EndWith("span") }

// EndWith closes the dataset and reports how many bytes of some tables there are for each
// call that was recorded.
func (p *Probed) EndWith(tables ...string) float64 {
	if p.ended {
		return 0
	}
	p.ended = true
	counts, _ := p.Counts()
	p.Trial.Close()
	p.sink.Dataset.Close()
	bytes := int64(0)
	for _, table := range tables {
		bytes += TableBytes(filepath.Join(p.sink.Dir, "dataset", table))
	}
	p.sink.Remove()
	return float64(bytes) / float64(max(1, counts.Records))
}
