package importer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

func TestARedactedImportNamesNoDirectory(t *testing.T) {
	const secret = `
{"ph": "X", "cat": "python_function", "name": "/home/alice/SECRET/train.py(12): step", "pid": 7, "tid": 8, "ts": 99, "dur": 80, "args": {}},
{"ph": "X", "cat": "python_function", "name": "SECRET/model.py(3): forward", "pid": 7, "tid": 8, "ts": 100, "dur": 70, "args": {}},
{"ph": "X", "cat": "user_annotation", "name": "load /home/alice/SECRET/data.csv", "pid": 7, "tid": 8, "ts": 101, "dur": 60, "args": {}}`
	path := file(t, "trace.json", trace(small+","+secret))
	for _, redacted := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "d")
		if _, err := Import(t.Context(), []string{path}, dir, Options{Redact: redacted}); err != nil {
			t.Fatal(err)
		}
		db, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		names := one(t, db, "SELECT string_agg(name, '; ' ORDER BY name) FROM span")
		if strings.Contains(names, "SECRET") == redacted || !strings.Contains(names, "train.py(12): step") || !strings.Contains(names,
			"model.py(3): forward") {
			t.Errorf("redacted %t: %s", redacted, names)
		}
		if got := one(t, db, "SELECT redacted FROM session"); (got == "true") != redacted {
			t.Errorf("session.redacted is %s", got)
		}
	}
}
