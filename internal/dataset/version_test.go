package dataset

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
)

// of makes a dataset whose session says that it has that schema, written by
// another program than ours.
func of(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.MkdirAll(filepath.Join(dir, "session"), 0o755); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.Exec(fmt.Sprintf("COPY (SELECT 's' AS session_id, '%s' AS schema_version, 1::BIGINT AS started_ns) TO '%s' (FORMAT parquet)",
		version, filepath.Join(dir, "session", "s.parquet")))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDatasetsOfOtherVersionsOpenOrSayWhyNot(t *testing.T) {
	ours, ok := majorMinor(output.SchemaVersion)
	if !ok {
		t.Fatal(output.SchemaVersion)
	}
	for version, want := range map[string]string{
		output.SchemaVersion: "", "1.0.0": "", fmt.Sprintf("%d.%d.7", ours[0], ours[1]): "",
		fmt.Sprintf("%d.%d.0", ours[0], ours[1]+1): "newer than", "latest": "is none",
	} {
		if got := strings.Join(open(t, of(t, version)).Warnings(), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	db, err := Open(of(t, fmt.Sprintf("%d.0.0", ours[0]+1)))
	if err == nil {
		db.Close()
	}
	if !errors.Is(err, ErrNewer) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}
