package views

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// kernels makes a dataset of a trace in which each kernel has a launch that takes
// 5 µs: launched, begins, lasts (µs), stream, name.
func kernels(t *testing.T, rows ...[5]any) *dataset.DB {
	t.Helper()
	var events []string
	for i, r := range rows {
		events = append(events,
			fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%v,"dur":5,"args":{"correlation":%d}}`,
				r[0], i+1),
			fmt.Sprintf(`{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":7,"ts":%v.001,"dur":%v,"args":{"correlation":%d,"stream":%v,"device":0}}`,
				r[4], r[1], r[2], i+1, r[3]))
	}
	path := filepath.Join(t.TempDir(), "t.json")
	if err := os.WriteFile(path, []byte(`{"traceEvents":[`+strings.Join(events, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := importer.Import(context.Background(), []string{path}, dir, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// want looks a row up by its first cell and compares the others, of which nil is any.
func want(t *testing.T, db *dataset.DB, view string, row int, cells ...any) {
	t.Helper()
	v, err := Build(t.Context(), db, view, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cells {
		got := v.Rows[row][i]
		if f, ok := got.(float64); ok && c != nil {
			if math.Abs(f-c.(float64)) > 1e-9 {
				t.Errorf("%s, %s: %v, want %v", view, v.Columns[i].Name, f, c)
			}
		} else if c != nil && fmt.Sprint(got) != fmt.Sprint(c) {
			t.Errorf("%s, %s: %v, want %v", view, v.Columns[i].Name, got, c)
		}
	}
}

func TestViewsOfThreeKernelsAndACollective(t *testing.T) {
	db := kernels(t,
		[5]any{0, 10, 20, 7, "a"},                        // 10 to 30
		[5]any{6, 40, 10, 7, "a"},                        // launched before a ended: its gap has another cause
		[5]any{60, 70, 30, 7, "b"},                       // launched after: the host's gap, 50 to 70
		[5]any{12, 20, 60, 9, "ncclDevKernel_AllReduce"}, // 20 to 80
	)
	want(t, db, "breakdown", 0, nil, 0.09, 0.06, 100*60.0/90, 0.03, 100*30.0/90, 0.0, 0.0)
	want(t, db, "overlap", 0, nil, 0.06, 0.03, 50.0, 0.03)
	want(t, db, "idle", 0, nil, 7, 0.03, 0.02, 100*20.0/30, 0.0, 0.0, 0.01, 100*10.0/30)
	want(t, db, "queue", 0, nil, 7, 3, nil, 2, nil, 0.0)
	want(t, db, "launches", 0, "a", 2, 5.0, 15.0, nil, 0, 0.0, 0, 0)
	want(t, db, "collectives", 0, "ncclDevKernel_AllReduce", 1, 0.06)
	if _, err := Build(t.Context(), db, "modules", Options{}); !errors.Is(err, ErrUntold) {
		t.Errorf("modules of a trace without any: %v", err)
	}
}

func TestAnOutlierIsFarFromItsMedianAndAloneAtThat(t *testing.T) {
	var rows [][5]any
	for i := range 20 {
		took := 100 + i%3
		if i == 13 {
			took = 180
		}
		rows = append(rows, [5]any{i * 300, i*300 + 10, took, 7, "ncclDevKernel_AllReduce"})
	}
	want(t, kernels(t, rows...), "collectives", 0, nil, 20, nil, 100.0, 0.101, nil, 0.18, 1)
}

// TestRegionsOfSlicesStandForAll: a row of a slice counts for as many as it stands for.
func TestRegionsOfSlicesStandForAll(t *testing.T) {
	j := scripted.New()
	for range 6 {
		j.Call("scope", "", "Block", 1_000_000)
	}
	j.Weight = 5
	for range 4 {
		j.Call("scope", "", "Head", 500_000)
	}
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want(t, db, "modules", 0, "Head", 20, 10.0, 62.5, 0.5, nil, 0.5, 0, nil, 4)
	want(t, db, "modules", 1, "Block", 6, 6.0, 37.5, nil, nil, nil, nil, nil, 6)
	v, err := Build(t.Context(), db, "modules", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text, data bytes.Buffer
	if err := v.WriteText(&text, 0); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&data).Encode(v); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "estimated: ") || !strings.Contains(data.String(), `"estimated":true`) {
		t.Errorf("nothing says that counts are estimates:\n%s\n%s", text.String(), data.String())
	}
	if strings.Contains(text.String(), "percent") {
		t.Errorf("a header has a unit in letters:\n%s", text.String())
	}
}

// TestABarHasAllShares, none longer than it may be, and a name of its own.
func TestABarHasAllShares(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   string
	}{
		{[]float64{50}, strings.Repeat("█", 10)},
		{[]float64{60, 30, 10}, strings.Repeat("█", 12) + strings.Repeat("▒", 6) + "░░"},
		{[]float64{33.3, 33.3, 33.4}, strings.Repeat("█", 7) + strings.Repeat("▒", 6) + strings.Repeat("░", 7)},
		{[]float64{90, 90}, strings.Repeat("█", 18) + "▒▒"},
		{[]float64{-5}, ""},
	} {
		if got := bar(c.shares); got != c.want {
			t.Errorf("%v: %q, want %q", c.shares, got, c.want)
		}
	}
	db := kernels(t, [5]any{0, 10, 20, 7, "a"}, [5]any{60, 70, 30, 7, "b"})
	for _, view := range []string{"breakdown", "launches"} {
		v, err := Build(t.Context(), db, view, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := v.WriteText(&text, 0); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, cell := range strings.Split(strings.Split(text.String(), "\n")[2], "│") {
			if cell = strings.TrimSpace(cell); cell != "" && seen[cell] {
				t.Errorf("%s: two columns are called %q", view, cell)
			}
			seen[cell] = true
		}
	}
}

// TestOverlapSaysThatCollectivesAreMissing of a trace that has devices.
func TestOverlapSaysThatCollectivesAreMissing(t *testing.T) {
	_, err := Build(t.Context(), kernels(t, [5]any{0, 10, 20, 7, "a"}), "overlap", Options{})
	if !errors.Is(err, ErrUntold) || !strings.Contains(err.Error(), "lacks collectives on devices") {
		t.Error(err)
	}
}
