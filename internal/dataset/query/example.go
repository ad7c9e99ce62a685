package query

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed examples/*.sql
var exampleFiles embed.FS

// Example is a query that comes with the tool. It runs as it is in the duckdb
// shell, too, on the views of views.sql.
type Example struct {
	Name  string
	Title string // its first comment
	SQL   string
}

// Examples lists them by name.
func Examples() []Example {
	entries, err := exampleFiles.ReadDir("examples")
	if err != nil {
		panic(err) // embedded
	}
	var all []Example
	for _, entry := range entries {
		text, err := exampleFiles.ReadFile(path.Join("examples", entry.Name()))
		if err != nil {
			panic(err)
		}
		title, _, _ := strings.Cut(string(text), "\n")
		all = append(all, Example{
			Name:  strings.TrimSuffix(entry.Name(), ".sql"),
			Title: strings.TrimPrefix(title, "-- "),
			SQL:   string(text),
		})
	}
	return all
}

// FindExample returns the example of that name.
func FindExample(name string) (Example, error) {
	var names []string
	for _, e := range Examples() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Example{}, fmt.Errorf("no example %q: choose one of %s", name, strings.Join(names, ", "))
}
