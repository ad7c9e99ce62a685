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
	graphBegins = "<!-- imports of tracer, drawn by: go test ./internal/testkit/rooms -run Graph -update -->\n"
	graphEnds   = "<!-- end of imports -->\n"
)

// drawn is the import graph of tracer's packages in layers: what stands on a line imports only
// packages of the layers above.
func drawn(packages []goPackage) string {
	imports := map[string][]string{}
	for _, p := range packages {
		if p.ImportPath == "tracer/syscallnames" {
			continue
		}
		imports[p.ImportPath] = slices.DeleteFunc(p.Imports, func(i string) bool { return i != "tracer" && !strings.HasPrefix(i, "tracer/") })
	}
	layers := map[string]int{}
	var layer func(pkg string) int
	layer = func(pkg string) int {
		if n, ok := layers[pkg]; ok {
			return n
		}
		n := 0
		for _, i := range imports[pkg] {
			n = max(n, layer(i)+1)
		}
		layers[pkg] = n
		return n
	}
	rows := map[int][]string{}
	for pkg, imported := range imports {
		var names []string
		for _, i := range imported {
			names = append(names, strings.TrimPrefix(i, "tracer/"))
		}
		slices.Sort(names)
		row := fmt.Sprintf("%-17s", strings.TrimPrefix(pkg, "tracer/"))
		if len(names) > 0 {
			row += " ──▶ " + strings.Join(names, ", ")
		}
		rows[layer(pkg)] = append(rows[layer(pkg)], strings.TrimRight(row, " "))
	}
	var text strings.Builder
	for n := range len(rows) {
		slices.Sort(rows[n])
		if n > 0 {
			text.WriteString("\n")
		}
		for _, row := range rows[n] {
			text.WriteString(row + "\n")
		}
	}
	return "```\n" + text.String() + "```\n"
}

func TestTheGraphOfImportsIsTheRealOne(t *testing.T) {
	const page = "../../../docs/architecture.md"
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
		t.Fatalf("the imports are others than %s draws; go test ./internal/testkit/rooms -run Graph -update draws them anew:\n%s", page, want)
	}
	if err := os.WriteFile(page, []byte(before+graphBegins+want+graphEnds+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
