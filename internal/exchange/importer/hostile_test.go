package importer

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A view is a program: it may yield rows without end. Only tables are read.
func TestAViewIsNoTableOfAnExport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "views.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE PROCESSES (pid INTEGER, name TEXT)",
		"CREATE VIEW StringIds AS WITH RECURSIVE r(id, value) AS (SELECT 1, 'x' UNION ALL SELECT id + 1, 'x' FROM r) SELECT id, value FROM r",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openNsys(path); err == nil || !strings.Contains(err.Error(), "no table StringIds") {
		t.Errorf("%v", err)
	}
}

type zeros struct{ left int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.left)
	clear(b[:n])
	z.left -= n
	return int(n), nil
}

// What unpacks to a thousand times its size is no trace.
func TestAFileThatUnpacksToFarMoreIsNoTrace(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.Copy(z, &zeros{1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	c := &counted{in: &packed}
	in, err := gzip.NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, &unpacked{in: in, packed: c}); err != nil || n != 1<<20 {
		t.Errorf("a small one: %d bytes, %v", n, err)
	}
	u := &unpacked{in: &zeros{1 << 40}, packed: &counted{read: 1 << 20}, read: mostUnpacked - 1<<10}
	if n, err := io.Copy(io.Discard, u); err == nil || n > 1<<20 {
		t.Errorf("a large one: %d bytes, %v", n, err)
	}
}
