package rooms

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// mostLines is how long a file of source may be: what is longer has two ideas.
const mostLines = 500

// long are the files that are longer, with how long they may be. It gets shorter.
var long = map[string]int{
	"tracer/process/live_test.go":     540, // live processes of every kind, one after the other
	"tracer/unwinding/live_test.go":   540,
	"tracer/unwinding/walker_test.go": 540,
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestNoFileIsTooLong(t *testing.T) {
	watched := 0
	for _, pattern := range []string{"../../*/*.go", "../../*/*/*.go", "../../*/*/*/*.go", "../../*/*/*/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if generated.Match(source) {
				continue
			}
			watched++
			own := name[len("../../"):]
			limit := mostLines
			if more, ok := long[own]; ok {
				limit = more
			}
			if lines := bytes.Count(source, []byte{'\n'}); lines > limit {
				t.Errorf("%s has %d lines, %d at the most: cut it where its second idea begins", own, lines, limit)
			}
		}
	}
	if watched < 500 {
		t.Fatalf("only %d files found", watched)
	}
}
