package whatif

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// published is where real traces with published results lie beside the
// repository, or a skipped test.
func published(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "straggler")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no published traces at %s", dir)
	}
	return dir
}

// result is the published answer for a job, as StragglerAnalysis writes it.
type result struct {
	Measured  map[string]float64            `json:"step_t_base"`
	Replayed  map[string]float64            `json:"step_t_nodelay"`
	Ideal     map[string]float64            `json:"step_t_noblk"`
	S         float64                       `json:"blocking_slowdown"`
	StepS     map[string]float64            `json:"blocking_step_slowdown"`
	DP        map[string]float64            `json:"blocking_decompose_by_dp_rank"`
	Stage     map[string]float64            `json:"blocking_decompose_by_stage"`
	OpType    map[string]float64            `json:"blocking_decompose_by_optype"`
	DPPerStep map[string]map[string]float64 `json:"blocking_decompose_by_dp_rank_per_step"`
	StagePer  map[string]map[string]float64 `json:"blocking_decompose_by_stage_per_step"`
	OpTypePer map[string]map[string]float64 `json:"blocking_decompose_by_optype_per_step"`
}

func readJSON(t *testing.T, into any, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// comparison holds our figures against published ones and keeps the worst.
type comparison struct {
	t     *testing.T
	n     int
	worst float64
	where string
}

func (c *comparison) equal(what string, got, want float64) {
	c.t.Helper()
	c.n++
	off := math.Abs(got-want) / math.Abs(want)
	if off > c.worst || math.IsNaN(off) {
		c.worst, c.where = off, what
	}
	if !(off <= 1e-4) {
		c.t.Errorf("%s: %v, published %v", what, got, want)
	}
}

func TestPublishedResultsOfEveryStep(t *testing.T) {
	dir := published(t)
	traces, err := filepath.Glob(filepath.Join(dir, "trace-*.parquet"))
	if err != nil || len(traces) == 0 {
		t.Fatalf("no traces in %s: %v", dir, err)
	}
	for _, path := range traces {
		name := filepath.Base(path)
		name = name[len("trace-") : len(name)-len(".parquet")]
		t.Run(name, func(t *testing.T) { comparePublished(t, dir, name) })
	}
}

func comparePublished(t *testing.T, dir, name string) {
	trace, err := ReadTrace(filepath.Join(dir, "trace-"+name+".parquet"))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := ReadMeta(filepath.Join(dir, "meta-"+name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Analyse(trace, meta)
	if err != nil {
		t.Fatal(err)
	}
	var want result
	readJSON(t, &want, dir, "result-"+name+".json")
	var mw struct{ Mw float64 }
	readJSON(t, &mw, dir, "mw-"+name+".json")
	var ms struct{ Ms float64 }
	readJSON(t, &ms, dir, "ms-"+name+".json")

	c := &comparison{t: t}
	c.equal("S", a.S, want.S)
	if a.MW == nil || a.MS == nil {
		t.Fatalf("M_W %v, M_S %v", a.MW, a.MS)
	}
	for what, pair := range map[string][2]float64{"M_W": {*a.MW, mw.Mw}, "M_S": {*a.MS, ms.Ms}} {
		if c.n++; math.Abs(pair[0]-pair[1]) > 1e-4 {
			t.Errorf("%s: %v, published %v", what, pair[0], pair[1])
		}
	}
	if len(a.Steps) != len(want.Measured) {
		t.Fatalf("%d steps, published %d", len(a.Steps), len(want.Measured))
	}
	for n, s := range a.Steps {
		step := strconv.FormatInt(s.Step, 10)
		c.equal("measured "+step, s.MeasuredS, want.Measured[step])
		c.equal("replayed "+step, s.ReplayedS, want.Replayed[step])
		c.equal("ideal "+step, s.IdealS, want.Ideal[step])
		c.equal("S of "+step, s.S, want.StepS[step])
		for _, d := range a.DPRanks {
			c.equal("dp_rank in "+step, d.PerStep[n], want.DPPerStep[step][strconv.Itoa(d.DPRank)])
		}
		for _, d := range a.Stages {
			c.equal("stage in "+step, d.PerStep[n], want.StagePer[step][strconv.Itoa(d.Stage)])
		}
		for _, d := range a.OpTypes {
			c.equal(d.OpType+" in "+step, d.PerStep[n], want.OpTypePer[step][d.OpType])
		}
	}
	for _, d := range a.DPRanks {
		c.equal("dp_rank "+strconv.Itoa(d.DPRank), d.S, want.DP[strconv.Itoa(d.DPRank)])
	}
	for _, d := range a.Stages {
		c.equal("stage "+strconv.Itoa(d.Stage), d.S, want.Stage[strconv.Itoa(d.Stage)])
	}
	for _, d := range a.OpTypes {
		c.equal(d.OpType, d.S, want.OpType[d.OpType])
	}
	t.Logf("%d published figures, the farthest off by %.1e of itself (%s); S %.6f, M_W %.6f, M_S %.6f, correlation %v, "+
		"cause %s, worker %+v",
		c.n, c.worst, c.where, a.S, *a.MW, *a.MS, *a.Correlation, a.Cause, a.Workers[0])
}
