package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	urfave "github.com/urfave/cli/v2"
)

// runApp runs one command as the binary does.
func runApp(command *urfave.Command, arguments ...string) (out, warnings string, code int, err error) {
	var stdout, stderr strings.Builder
	app := &urfave.App{
		Name: "ebpfprof", Commands: []*urfave.Command{command}, Writer: &stdout, ErrWriter: &stderr,
		ExitErrHandler: func(*urfave.Context, error) {},
	}
	err = app.Run(append([]string{"ebpfprof", command.Name}, arguments...))
	var exit urfave.ExitCoder
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		code = -1
	}
	return stdout.String(), stderr.String(), code, err
}

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
	out, _, code, err := runApp(fleetCommand(), "what-if", "--trace", trace, "--meta", meta, "--json")
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
	out, _, _, err = runApp(fleetCommand(), "what-if", "--trace", trace, "--meta", meta)
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
		{1, []string{"what-if", "--trace", trace, "--meta", trace}},
		{1, []string{"what-if", "--trace", trace + "x", "--meta", meta}},
	} {
		out, _, code, err := runApp(fleetCommand(), c.arguments...)
		if code != c.code || err == nil || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%q: code %d, %v\n%s", c.arguments, code, err, out)
		}
	}
}
