package output

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestSchemaPageIsGenerated(t *testing.T) {
	page, err := os.ReadFile("../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != Markdown() {
		t.Error("docs/schema.md is not what the code says: run go generate ./output")
	}
}

// TestSchemaChangesAreRecorded fails when a column changes and nobody says so.
func TestSchemaChangesAreRecorded(t *testing.T) {
	page, err := os.ReadFile("../docs/schema-changes.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile("(?m)^## (\\S+)\n+Fingerprint `([0-9a-f]+)`").FindStringSubmatch(string(page))
	if newest == nil || newest[1] != SchemaVersion || newest[2] != Fingerprint() {
		t.Errorf("the first entry of docs/schema-changes.md is %v; the schema is %s with fingerprint %s: record the change there, and raise "+
			"SchemaVersion once a version has been released",
			newest, SchemaVersion, Fingerprint())
	}
}

func TestSchemaPageKeepsItsTables(t *testing.T) {
	columns := 0
	for line := range strings.Lines(Markdown()) {
		if strings.HasPrefix(line, "| `") && !strings.HasPrefix(line, "| [") {
			if columns++; strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 7 {
				t.Errorf("broken row: %s", line)
			}
		}
	}
	want := len(schemaFields()) + len(FrameFields)
	for _, v := range DerivedViews() {
		want += len(v.Columns)
	}
	if columns != want {
		t.Errorf("%d columns on the page, %d in the schema", columns, want)
	}
}
