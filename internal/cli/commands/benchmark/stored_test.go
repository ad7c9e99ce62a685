package benchmark

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

// made is a store of two sessions of three runs each: the second is slower, and its machine is another one.
func made(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "store")
	s, err := store.Create(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, means := range [][]float64{{100, 101, 99}, {80, 81, 79}} {
		id := fmt.Sprintf("2026112%dT120000Z-00000%d", i+1, i)
		begin := time.Date(2026, 11, 21+i, 12, 0, 0, 0, time.UTC).UnixNano()
		if err := s.AddSession(store.Session{ID: id, Begin: begin, Host: "h", Extras: fmt.Sprintf(`{"branch":"b%d"}`, i)}); err != nil {
			t.Fatal(err)
		}
		for k, mean := range means {
			run := store.Run{Session: id, ID: fmt.Sprintf("%s:%04d", id, k+1), Name: "train %lr=1", Base: "train", System: "a", Partition: "p",
				Environ: "e", Repeat: int32(k),
				Attempt: 1, Begin: begin + int64(k), End: begin + int64(k) + 1e9, Command: "python train.py", Result: "pass",
				Inventory: fmt.Sprintf(`[{"key":"cpu","value":"model %d"}]`, i), Parameter: `{"lr":"1"}`, Periods: "[1,2,3]",
				Stages: `[{"name":"run","seconds":1}]`}
			number := store.Number{Session: id, Run: run.ID, Name: "throughput", Unit: "samples/s", Value: &mean, Of: 100, From: "steps",
				Ref: new(100.0), Lower: new(-0.1), Upper: new(0.1), Result: "pass"}
			if mean < 90 {
				run.Result, run.Stage, run.Reason, number.Result = "fail", "performance", "failed to meet its reference", "fail"
			}
			if err := s.AddRun(run, []store.Number{number, {Session: id, Run: run.ID, Name: "power", Why: "no meter"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func bench(t *testing.T, arguments ...string) string {
	t.Helper()
	out, _, code, err := testcommand.Run(Command(false), arguments...)
	if err != nil || code != 0 {
		t.Fatalf("%q: %d, %v", arguments, code, err)
	}
	return out
}

func contains(t *testing.T, out string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestSessionsAreListedShownAndDeleted(t *testing.T) {
	root := made(t)
	contains(t, bench(t, "list", root), "20261121T120000Z-000000", "2026-11-22 12:00:00", "train %lr=1", `{"branch":"b1"}`)
	var sessions []listed
	if err := json.Unmarshal([]byte(bench(t, "list", root, "--json")), &sessions); err != nil || len(sessions) != 2 ||
		sessions[1].Failures != 3 || sessions[0].Runs != 3 {
		t.Errorf("%+v, %v", sessions, err)
	}
	contains(t, bench(t, "show", root), "missed", "80 ", "77.52 to 82.48", "power: no meter", "cpu model 1",
		"Run 1, attempt 1: fail in stage performance")
	contains(t, bench(t, "show", root, "20261121"), "held", "100 ", "cpu model 0")
	contains(t, bench(t, "delete", root, "20261121"), "deleted 20261121T120000Z-000000")
	if out := bench(t, "list", root); strings.Contains(out, "20261121") || !strings.Contains(out, "20261122") {
		t.Errorf("after deleting the first:\n%s", out)
	}
}

func TestASessionIsWrittenForMachines(t *testing.T) {
	root := made(t)
	var suites struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(bench(t, "show", root, "--format", "junit")), &suites); err != nil {
		t.Fatal(err)
	}
	if s := suites.Suites[0]; s.Tests != 4 || s.Failures != 4 || len(s.Cases) != 4 ||
		s.Cases[0].Failure.Message != "failed to meet its reference" {
		t.Errorf("%+v", s)
	}
	rows, err := csv.NewReader(strings.NewReader(bench(t, "show", root, "--format", "csv"))).ReadAll()
	if err != nil || len(rows) != 7 || rows[1][7] != "throughput" || rows[1][8] != "80" {
		t.Errorf("%q, %v", rows, err)
	}
	var session struct {
		Verdict    string `json:"verdict"`
		Benchmarks []struct {
			References []struct {
				Result string   `json:"result"`
				Value  float64  `json:"value"`
				Lower  *float64 `json:"lower_bound"`
			} `json:"references"`
		} `json:"benchmarks"`
	}
	if err := json.Unmarshal([]byte(bench(t, "show", root, "--json")), &session); err != nil {
		t.Fatal(err)
	}
	if r := session.Benchmarks[0].References[0]; session.Verdict != "missed" || r.Result != "fail" || r.Value != 80 || *r.Lower != 90 {
		t.Errorf("%+v", session)
	}
	contains(t, bench(t, "show", root, "--format", "html"), "<svg", "train %lr=1", "</html>")
	contains(t, bench(t, "show", root, "--format", "markdown"), "## train", "| throughput |")
}

func TestComparisonsNameWhatDiffersFirst(t *testing.T) {
	root := made(t)
	out := bench(t, "compare", root, "last/last-1/mean:/+psamples")
	contains(t, out, "cpu: model 0 → model 1", "-20", "worse", "samples/s", "psamples (lhs)")
	if strings.Index(out, "model 0") > strings.Index(out, "worse") {
		t.Errorf("what differs stands behind the table:\n%s", out)
	}
	// The same by an expression over sessions, and by a period.
	for _, spec := range []string{`?branch=="b1"/?branch=="b0"/mean:/`, "20261122:20261123/20261121:20261122/mean:basename,lr,pvar/",
		"20261122T120000Z-000001/20261121T120000Z-000000/p50:/"} {
		contains(t, bench(t, "compare", root, spec, "--number", "throughput"), "-20", "worse")
	}
	var rows struct {
		Rows []struct {
			Columns map[string]any `json:"columns"`
			Verdict string         `json:"verdict"`
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(bench(t, "compare", root, "last-1/last/stats:/", "--json")), &rows); err != nil {
		t.Fatal(err)
	}
	if r := rows.Rows[0]; r.Verdict != "better" || r.Columns["pdiff (%)"] != 25.32 || r.Columns["pval (p99) (lhs)"] != 101.0 {
		t.Errorf("%+v", rows)
	}
	contains(t, bench(t, "compare", root, "last/last/mean:/"), "Nothing of what", "within noise")
	contains(t, bench(t, "trend", root), "-20.0 %, worse", "█")
	contains(t, bench(t, "trend", root, "throughput", "--json"), `"value": 80`)
}

func TestWhatCannotBeMeantSaysWhatToDo(t *testing.T) {
	root := made(t)
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"list", t.TempDir()}, "no store of benchmarks"},
		{[]string{"list", root, "more"}, "unexpected argument"},
		{[]string{"list", "--store", t.TempDir()}, "no store of benchmarks"},
		{[]string{"show", root, "2025"}, "bench list shows them"},
		{[]string{"show", root, "2026"}, "give more of the name"},
		{[]string{"show", root, "--format", "pdf"}, "unknown format"},
		{[]string{"delete", root}, "which session"},
		{[]string{"compare", root}, "give one comparison"},
		{[]string{"compare", root, "last/last-5/mean:/"}, "2 sessions only"},
		{[]string{"compare", root, "?nobody==1/last/mean:/"}, "selecting sessions"},
		{[]string{"compare", root, "last/last-1/mean:/", "--name", "("}, "--name"},
		{[]string{"compare", root, "now-1m:now/last/mean:/"}, "nothing is on both sides"},
		{[]string{"trend", root, "power"}, "no run of the store has a value of power"},
		{[]string{"true"}, "reads only"},
	} {
		_, _, code, err := testcommand.Run(Command(false), c.arguments...)
		if err == nil || code == 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %d, %v; want %q", c.arguments, code, err, c.want)
		}
	}
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{nil, "give the command to benchmark"},
		{[]string{"none.yaml"}, "no such file"},
		{[]string{"--repeat", "0", "true"}, "--repeat 0"},
		{[]string{"--only", "x", "true"}, "--only is for suites"},
		{[]string{"--session-extras", "x", "true"}, "give KEY=VALUE"},
		{[]string{"--loss", "(", "true"}, "--loss"},
		{[]string{"--duration", "1s", "--reruns", "2", "true"}, "one of --duration and --reruns"},
	} {
		_, _, _, err := testcommand.Run(Command(true), c.arguments...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.arguments, err, c.want)
		}
	}
}
