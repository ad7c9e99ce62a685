package importer

import (
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exportOf is a SQLite file that the statements have made.
func exportOf(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A view is a program: it may yield rows without end. Only tables are read.
func TestAViewIsNoTableOfAnExport(t *testing.T) {
	path := exportOf(t,
		"CREATE TABLE PROCESSES (pid INTEGER, name TEXT)",
		"CREATE VIEW StringIds AS WITH RECURSIVE r(id, value) AS (SELECT 1, 'x' UNION ALL SELECT id + 1, 'x' FROM r) SELECT id, value FROM r")
	if _, err := openNsys(path); err == nil || !strings.Contains(err.Error(), "no table StringIds") {
		t.Errorf("%v", err)
	}
}

// A table that is declared as another kind, in text that an editor of the file chose, is a
// program too.
func TestAVirtualTableIsNoTableOfAnExport(t *testing.T) {
	path := exportOf(t,
		"CREATE VIRTUAL TABLE StringIds USING fts5(id, value)",
		"PRAGMA writable_schema = 1",
		"UPDATE sqlite_master SET sql = 'CREATE  VIRTUAL TABLE StringIds USING fts5(id, value)' WHERE name = 'StringIds'")
	if _, err := openNsys(path); err == nil || !strings.Contains(err.Error(), "no table StringIds") {
		t.Errorf("%v", err)
	}
}

// pageBytes is the size of SQLite's pages where nothing else was asked for.
const pageBytes = 4096

// A table whose pages lead to the same page again and again has rows without end, in a file of
// some pages.
func TestATableOfPagesThatRepeatIsDamaged(t *testing.T) {
	path := exportOf(t,
		"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
		"WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r WHERE id < 20000) INSERT INTO StringIds SELECT id, 'x' FROM r")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	if err := db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = 'StringIds'").Scan(&root); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := content[(root-1)*pageBytes : root*pageBytes]
	if page[0] != 5 {
		t.Fatalf("the table's first page is of kind %d, want an inner one of a table", page[0])
	}
	cells := int(binary.BigEndian.Uint16(page[3:]))
	first := page[binary.BigEndian.Uint16(page[12:]):][:4]
	for i := range cells { // every child is the first one
		copy(page[binary.BigEndian.Uint16(page[12+2*i:]):], first)
	}
	// And there are more levels: a page of such pages, each of which leads to all that follow.
	if err := os.WriteFile(path, deepened(content, root, cells), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := openNsys(path)
	if err == nil || !strings.Contains(err.Error(), "more rows than a file of its size can have") && !strings.Contains(err.Error(),
		"malformed") {
		t.Errorf("%v: %v", n, err)
	}
}

// deepened puts four pages above the children of a table's first page, each of which has the
// next as all its children.
func deepened(content []byte, root int64, cells int) []byte {
	at := func(page int64) []byte { return content[(page-1)*pageBytes : page*pageBytes] }
	upper := root
	for range 4 {
		content = append(content, at(upper)...)
		lower := uint32(len(content) / pageBytes)
		page := at(upper)
		for i := range cells {
			binary.BigEndian.PutUint32(page[binary.BigEndian.Uint16(page[12+2*i:]):], lower)
		}
		binary.BigEndian.PutUint32(page[8:], lower)
		upper = int64(lower)
	}
	binary.BigEndian.PutUint32(content[28:], uint32(len(content)/pageBytes)) // the file's size, in its header
	return content
}
