package rooms

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the import graph of docs/architecture.md anew")

const (
	graphBegins = "<!-- imports of tracer, drawn by: go test ./internal/rooms -run Graph -update -->\n"
	graphEnds   = "<!-- end of imports -->\n"
)

// drawn is the import graph of tracer's packages, a floor below the other: what stands
// on a line imports only what stands above.
func drawn(packages []goPackage) string {
	rows := map[int][]string{}
	for _, p := range packages {
		if p.ImportPath != "tracer" && !strings.HasPrefix(p.ImportPath, "tracer/") || p.ImportPath == "tracer/syscallnames" {
			continue
		}
		var imported []string
		for _, i := range p.Imports {
			if rest, ok := strings.CutPrefix(i, "tracer/"); ok {
				imported = append(imported, rest)
			}
		}
		slices.Sort(imported)
		row := fmt.Sprintf("%-17s", strings.TrimPrefix(p.ImportPath, "tracer/"))
		if len(imported) > 0 {
			row += " ──▶ " + strings.Join(imported, ", ")
		}
		floor := floorOf(p.ImportPath)
		rows[floor] = append(rows[floor], strings.TrimRight(row, " "))
	}
	var text strings.Builder
	for floor := range floors {
		slices.Sort(rows[floor])
		for _, row := range rows[floor] {
			text.WriteString(row + "\n")
		}
		if len(rows[floor]) > 0 && floor < floorOf("tracer") {
			text.WriteString("\n")
		}
	}
	return "```\n" + text.String() + "```\n"
}

func TestTheGraphOfImportsIsTheRealOne(t *testing.T) {
	const page = "../../docs/architecture.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), graphBegins)
	there, after, ends := strings.Cut(rest, graphEnds)
	if !begins || !ends {
		t.Fatalf("%s has no graph of imports", page)
	}
	want := drawn(list(t, "./tracer/..."))
	if there == want {
		return
	}
	if !*update {
		t.Fatalf("the imports are others than %s draws; go test ./internal/rooms -run Graph -update draws them anew:\n%s", page, want)
	}
	if err := os.WriteFile(page, []byte(before+graphBegins+want+graphEnds+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
