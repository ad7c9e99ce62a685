// Command columns fails where a document has lines longer than 120 columns: what people
// read in terminals and in diffs. Tables, program output (between fences) and generated
// documents may have them.
//
//	go run ./internal/dev/columns README.md docs/*.md
package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

const most = 120

func main() {
	failed := false
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "columns:", err)
			os.Exit(2)
		}
		for _, line := range tooLong(string(text)) {
			failed = true
			fmt.Printf("%s:%d: more than %d columns\n", path, line, most)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// tooLong lists the lines of a Markdown document that are too long, from 1.
func tooLong(text string) (lines []int) {
	if strings.Contains(text, "do not edit. -->") {
		return nil
	}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		plain := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(plain, "```"):
			fenced = !fenced
		case !fenced && !strings.HasPrefix(plain, "|") && utf8.RuneCountInString(line) > most:
			lines = append(lines, i+1)
		}
	}
	return lines
}
