package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

type operation struct {
	DPRank   int32   `parquet:"dp_rank"`
	Stage    int32   `parquet:"stage"`
	Rank     int32   `parquet:"rank"`
	Step     int64   `parquet:"step"`
	OpType   string  `parquet:"optype"`
	Start    float32 `parquet:"start_ts"`
	Duration float32 `parquet:"duration"`
	Seq      int32   `parquet:"seq_id"`
	MC       int32   `parquet:"mc"`
	MB       int32   `parquet:"mb_id"`
	GMC      int32   `parquet:"gmc"`
}

// fleetJob has four workers, of which the third takes twice as long.
func fleetJob(t *testing.T) (trace, meta string) {
	t.Helper()
	var rows []operation
	for dp := range int32(4) {
		duration := float32(1)
		if dp == 2 {
			duration = 2
		}
		rows = append(rows, operation{DPRank: dp, Rank: dp * 8, OpType: "forward-compute", Duration: duration},
			operation{DPRank: dp, Rank: dp * 8, OpType: "optimizer-clip-main-grad", Start: duration, Duration: 2.5 - duration})
	}
	trace, meta = filepath.Join(t.TempDir(), "trace.parquet"), filepath.Join(t.TempDir(), "meta.yaml")
	if err := errors.Join(parquet.WriteFile(trace, rows),
		os.WriteFile(meta, []byte("dp_size: 4\npp_size: 1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return trace, meta
}

func TestWhatIfNamesTheSlowWorker(t *testing.T) {
	trace, meta := fleetJob(t)
	out, _, code, err := testcommand.Run(Command(), "what-if", "--trace", trace, "--meta", meta, "--json")
	if err != nil || code != 0 {
		t.Fatal(err)
	}
	var answer struct {
		S       float64  `json:"S"`
		MW      *float64 `json:"M_W"`
		MS      *float64 `json:"M_S"`
		Cause   string   `json:"cause"`
		Workers []struct {
			Rank int     `json:"rank"`
			S    float64 `json:"S_w"`
		} `json:"workers"`
		Stages []struct {
			Stage int     `json:"stage"`
			S     float64 `json:"S"`
		} `json:"stages"`
		OpTypes []struct {
			OpType string  `json:"optype"`
			S      float64 `json:"S"`
		} `json:"optypes"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Cause != "slow_worker" || answer.MW == nil || answer.MS != nil || len(answer.Workers) != 4 ||
		answer.Workers[0].Rank != 16 || len(answer.Stages) != 1 || answer.OpTypes[0].OpType != "forward-compute" {
		t.Errorf("%+v", answer)
	}
	out, _, _, err = testcommand.Run(Command(), "what-if", "--trace", trace, "--meta", meta)
	if err != nil || !strings.HasPrefix(out, "A step takes 1.4") || !strings.Contains(out, "rank 16") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFleetMistakesAreOneSentenceAndACode(t *testing.T) {
	trace, meta := fleetJob(t)
	for _, c := range []struct {
		code      int
		arguments []string
	}{
		{2, []string{"nope"}},
		{2, []string{"what-if"}},
		{2, []string{"what-if", "--trace", trace}},
		{2, []string{"what-if", "--trace", trace, "--meta", meta, "more"}},
		{2, []string{"what-if", "--nope"}},
		{1, []string{"what-if", "--trace", meta, "--meta", meta}},
		{2, []string{"registrar"}},
		{2, []string{"registrar", "--least", "1", "store"}},
		{2, []string{"registrar", "--keep-days", "-1", "store"}},
		{1, []string{"registrar", trace + "x"}},
		{1, []string{"registrar", filepath.Dir(trace)}},
		{2, []string{"report", "--engine", "hive", "store"}},
		{2, []string{"report", "--master", "local", "store"}},
		{2, []string{"report", "--engine", "spark", "--master", "spark://head:7077", "s3://bucket"}},
		{1, []string{"report", "--engine", "spark", trace + "x"}},
		{1, []string{"what-if", "--trace", trace, "--meta", trace}},
		{1, []string{"what-if", "--trace", trace + "x", "--meta", meta}},
	} {
		out, _, code, err := testcommand.Run(Command(), c.arguments...)
		if code != c.code || err == nil || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%q: code %d, %v\n%s", c.arguments, code, err, out)
		}
	}
}

// A timer that starts before the agents do has nothing to complain of.
func TestAStoreToWhichNothingWasUploadedIsNoFailureOfTheRegistrar(t *testing.T) {
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "lost+found"), 0o700); err != nil { // a volume's
		t.Fatal(err)
	}
	for says, arguments := range map[string][]string{"nothing has been uploaded yet\n": nil, `"partitions":0`: {"--json"}} {
		out, _, code, err := testcommand.Run(Command(), append(append([]string{"registrar"}, arguments...), empty)...)
		if err != nil || code != 0 || !strings.Contains(out, says) {
			t.Errorf("%q: %d, %q, %v", arguments, code, out, err)
		}
	}
	if _, _, code, err := testcommand.Run(Command(), "report", empty); code != 1 || !strings.Contains(fmt.Sprint(err),
		"nothing has been uploaded yet") {
		t.Errorf("%d, %v", code, err)
	}
}

func TestTheRegistrarSaysWhatItDid(t *testing.T) {
	directory := t.TempDir()
	s, err := store.NewDirectory(directory)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(5) {
		b := store.Batch{Session: fmt.Sprint(n), Job: "j", Host: "h", Patterns: []pattern.Pattern{{BeginNS: n * 1e9, EndNS: n*1e9 + 1,
			Name: "f"}}}
		if _, err := store.Send(t.Context(), s, b); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		arguments []string
		says      string
	}{
		{[]string{"--dry-run"}, "2 partitions: 10 files would be merged, 0 removed, 0 for their age\n"},
		{nil, "2 partitions: 10 files became 2 (10 rows), 0 removed, 0 for their age; 10 that were merged are removed later\n"},
		{[]string{"--grace", "0s"}, "2 partitions: 0 files became 0 (0 rows), 10 removed, 0 for their age\n"},
		{[]string{"--json", "--keep-days", "0"}, `"removed":0`},
	} {
		out, warnings, _, err := testcommand.Run(Command(), append(append([]string{"registrar"}, c.arguments...), directory)...)
		if err != nil || !strings.Contains(out, c.says) || strings.Contains(warnings,
			"removed for its age") == slices.Contains(c.arguments, "0") {
			t.Errorf("%q: %q, %q, %v", c.arguments, out, warnings, err)
		}
	}
	out, _, code, err := testcommand.Run(Command(), "report", directory)
	if err != nil || code != 0 || !strings.Contains(out, "No worker and no function stands out.") {
		t.Errorf("%q, %v", out, err)
	}
}
