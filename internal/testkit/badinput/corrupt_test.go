package badinput

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damage overwrites every file of a table.
func damage(t *testing.T, dataset, table string, how func([]byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dataset, table, "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", table, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, how(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueryOfADamagedDatasetReadsWhatIsWhole(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	for name, how := range map[string]func([]byte) []byte{
		"cut in half": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":       func([]byte) []byte { return nil },
		"overwritten": func(b []byte) []byte { return []byte(strings.Repeat("x", len(b))) },
	} {
		t.Run(name, func(t *testing.T) {
			dataset := filepath.Join(t.TempDir(), "d")
			run(t, ebpfprof, "attach", "--pid", pidOf(job), "--duration", "1s", "--output", dataset).check(t, ok)
			damage(t, dataset, "span", how)
			r := run(t, ebpfprof, "query", dataset, "SELECT count(*) AS n FROM process", "--format", "csv")
			if r.code != ok || !strings.Contains(r.stdout, "1") || !strings.Contains(r.stderr, "warning: ") {
				t.Errorf("the other tables: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			r = run(t, ebpfprof, "query", dataset, "SELECT count(*) AS n FROM span", "--format", "csv")
			if strings.Contains(r.stderr, "goroutine ") || !strings.Contains(r.stderr, "span") {
				t.Errorf("the damaged table is not named: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}
