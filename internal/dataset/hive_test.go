package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A store's directories are called by jobs, which are called what they like: also when all
// of a store's look like numbers.
func TestAHiveKeyThatTheFilesHaveKeepsItsType(t *testing.T) {
	type row struct {
		Job string `parquet:"job"`
	}
	for _, job := range []string{"007", "1e3", "2026-11-23"} {
		root := t.TempDir()
		dir := filepath.Join(root, "pattern", "job="+job, "date=2026-11-23")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := parquet.WriteFile(filepath.Join(dir, "a.parquet"), []row{{job}}); err != nil {
			t.Fatal(err)
		}
		db, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		var of, typeOf, date string
		err = db.Row(t.Context(), "SELECT job, typeof(job), typeof(date) FROM pattern", nil, &of, &typeOf, &date)
		if err != nil || of != job || typeOf != "VARCHAR" || date != "DATE" {
			t.Errorf("job %s: %q of type %s, date of type %s, %v", job, of, typeOf, date, err)
		}
		db.Close()
	}
}
