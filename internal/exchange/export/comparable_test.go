package export

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// comparable are what diff compares before it compares times, and the rows with their weights.
func comparable(t *testing.T, dir string) (facts []string) {
	t.Helper()
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(t.Context(), `SELECT concat_ws(' | ', framework, framework_version, python_version, rank, world_size, command,
		(SELECT any_value(cpu_model) FROM session),
		(SELECT any_value(level) FROM session), (SELECT count(*) FROM span), (SELECT sum(weight) FROM span)) FROM process ORDER BY pid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		facts = append(facts, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return facts
}

// TestAnExportThatIsImportedAgainIsComparable to its recording: a job without a rank gets
// none by the way, steps that were marked for readers are no rows, and weights stay.
func TestAnExportThatIsImportedAgainIsComparable(t *testing.T) {
	rank, world := int32(3), int32(8)
	for name, p := range map[string]event.Process{"no rank": {}, "a rank": {Rank: &rank, WorldSize: &world}} {
		d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
		if err != nil {
			t.Fatal(err)
		}
		framework, version, python := "pytorch", "2.15.0", "3.11.7"
		p.ID, p.PID, p.Command, p.Framework, p.FrameworkVersion, p.PythonVersion = 1, 7, "python train.py", &framework, &version, &python
		var spans []event.Span
		for n := range int64(30) {
			for i, c := range []*event.Call{{Layer: "op", Name: "aten::mm"}, {Layer: "autograd", Category: "backward", Name: "Engine::execute"},
				{Layer: "scope", Name: "Optimizer.step#SGD.step"}} {
				spans = append(spans, event.Span{ID: 3*n + int64(i) + 1, StartNS: 1e15 + n*1e7 + int64(i)*3e6, DurationNS: 2e6, PID: 7, TID: 7, Call: c,
					End: event.EndExitSite, Weight: 2.5, SequenceNumber: -1})
			}
		}
		if err := errors.Join(d.Session(event.Recording{ID: "s", CPUModel: "a processor", Level: "window"}),
			d.Write(&event.Batch{Processes: []event.Process{p}}), d.Write(&event.Batch{Spans: spans}), d.Close()); err != nil {
			t.Fatal(err)
		}
		trace := filepath.Join(t.TempDir(), "trace.json")
		out, err := os.Create(trace)
		if err != nil {
			t.Fatal(err)
		}
		db, err := dataset.Open(d.Dir())
		if err != nil {
			t.Fatal(err)
		}
		_, err = Write(t.Context(), db, out, "kineto", Options{})
		if err := errors.Join(err, out.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(t.TempDir(), "again")
		if _, err := importer.Import(t.Context(), []string{trace}, again, importer.Options{}); err != nil {
			t.Fatal(err)
		}
		if before, after := comparable(t, d.Dir()), comparable(t, again); !slices.Equal(before, after) {
			t.Errorf("%s:\n%q\n%q", name, before, after)
		}
	}
}
