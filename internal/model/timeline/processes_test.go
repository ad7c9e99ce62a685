package timeline

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// traced imports a trace of a loop of ten marked steps of 4.43 ms, as a profiler in a container writes it: process 100.
func traced(t *testing.T, name string, at float64) string {
	t.Helper()
	text := `{"schemaVersion": 1, "traceEvents": [`
	for i := range 10 {
		begin := at + float64(i)*4430
		text += fmt.Sprintf(`{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 100, "tid": 100, "ts": %f, "dur": 4430},
			{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": %f, "dur": 2000},`, i, begin, begin+100)
	}
	text = text[:len(text)-1] + "]}"
	file, dir := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "d")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Import(t.Context(), []string{file}, dir, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Two processes of one number, of two recordings in one directory, are two processes: taken for one their
// steps would be twice as many, and half as long.
func TestProcessesOfOneNumberInTwoRecordingsAreTwo(t *testing.T) {
	dir, other := traced(t, "first.json", 1_000_000), traced(t, "second.json", 1_002_215)
	err := filepath.WalkDir(other, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".parquet" || entry.Name() == "schema.parquet" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		table, _ := filepath.Rel(other, filepath.Dir(path))
		return os.WriteFile(filepath.Join(dir, table, "other-"+entry.Name()), content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, dir)
	threads := find(t, db)
	if len(threads) != 2 || threads[0].PID == threads[1].PID {
		t.Fatalf("%d threads with steps, want those of two processes: %+v", len(threads), threads)
	}
	for _, thread := range threads {
		if len(thread.Steps) != 10 || thread.Steps[4].Kind != steps.Train && thread.Steps[4].Kind != steps.Warmup {
			t.Errorf("process %d: %d steps", thread.PID, len(thread.Steps))
		}
		for _, s := range thread.Steps {
			if s.Period != 4_430_000 {
				t.Errorf("process %d: step %d of %d ns, want 4.43 ms", thread.PID, s.Number, s.Period)
			}
			all, err := SpansOf(t.Context(), db, thread, []Step{s})
			if err != nil {
				t.Fatal(err)
			}
			if spans := all[0]; len(spans) != 2 {
				t.Errorf("process %d: step %d has %d spans; want its own two", thread.PID, s.Number, len(spans))
			}
		}
	}
	var same int
	if err := db.Row(t.Context(), "SELECT count(*) - count(DISTINCT span_id) FROM span", nil, &same); err != nil || same != 0 {
		t.Errorf("%d spans have the number of another, %v", same, err)
	}
	if len(db.Warnings()) == 0 {
		t.Error("nobody says that process ids are shown in another way than the files have them")
	}
}
