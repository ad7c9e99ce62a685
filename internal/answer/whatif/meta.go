package whatif

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrBadMeta is returned for a YAML file that does not describe a job.
var ErrBadMeta = errors.New("not the description of a job")

// Meta is how the job was cut into ranks.
type Meta struct {
	Name    string `yaml:"trial_name"`
	DPSize  int    `yaml:"dp_size"`  // data parallel
	DSPSize int    `yaml:"dsp_size"` // splits a sequence; 1 where it is missing
	PPSize  int    `yaml:"pp_size"`  // stages of the pipeline
	TPSize  int    `yaml:"tp_size"`  // tensor parallel
	VPPSize int    `yaml:"vpp_size"` // model chunks of a stage; 1 where it is missing
	World   int    `yaml:"world_size"`
}

// ReadMeta reads the YAML file. The errors are those of the file system and
// ErrBadMeta.
func ReadMeta(path string) (Meta, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Meta{}, fmt.Errorf("reading the job's description: %w", err)
	}
	m := Meta{DSPSize: 1, TPSize: 1, VPPSize: 1}
	if err := yaml.Unmarshal(text, &m); err != nil {
		return Meta{}, fmt.Errorf("reading %s: %w: %s", path, ErrBadMeta, strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, size := range []struct {
		name string
		n    int
	}{{"dp_size", m.DPSize}, {"pp_size", m.PPSize}, {"dsp_size", m.DSPSize}, {"vpp_size", m.VPPSize}} {
		if size.n < 1 {
			return Meta{}, fmt.Errorf("reading %s: %w: %s is %d, it must be at least 1", path, ErrBadMeta, size.name, size.n)
		}
	}
	return m, nil
}

// Workers are as many as the slowest 3 % are taken of: a worker is a stage of a
// dp_rank, whatever the size of its tensor group.
func (m Meta) Workers() int { return m.DPSize * m.PPSize }

// fits compares it with the trace that it claims to describe.
func (m Meta) fits(t *Trace) error {
	workers := map[[2]int]bool{}
	dp, pp := 0, 0
	for _, o := range t.Ops {
		workers[[2]int{o.DPRank, o.Stage}] = true
		dp, pp = max(dp, o.DPRank+1), max(pp, o.Stage+1)
	}
	switch {
	case dp != m.DPSize || pp != m.PPSize:
		return fmt.Errorf("%w: it says dp_size %d and pp_size %d, the trace has dp_ranks up to %d and stages up to %d: "+
			"is it another job's?", ErrBadMeta, m.DPSize, m.PPSize, dp-1, pp-1)
	case len(workers) != m.Workers():
		return fmt.Errorf("%w: the trace has %d of %d workers", ErrBadTrace, len(workers), m.Workers())
	}
	return nil
}
