package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run of some parts leaves on the page what it did not measure: other rows of a
// table, other sections, and those that other programs wrote.
func TestAPartialRunLeavesTheRestOfThePage(t *testing.T) {
	const old = "# Cost\n\nold words\n\n## What you pay\n\nold words\n\n| job | with | step |\n| --- | --- | --- |\n| a | x | 1 |\n| a | " +
		"y | 2 |\n\n" +
		"## One hit\n\nold\n\n## Soak\n\nflat\n\n## How this is measured\n\nold way\n"
	const written = "# Cost\n\nnew words\n\n## What you pay\n\nnew words\n\n| job | with | step |\n| --- | --- | --- |\n| a | y | 3 |\n| b " +
		"| x | 4 |\n\n" +
		"## A launch\n\nnew\n\n## How this is measured\n\nnew way\n"
	got := (&results{}).merge(old, written)
	const want = "# Cost\n\nnew words\n\n## What you pay\n\nnew words\n\n| job | with | step |\n| --- | --- | --- |\n| a | x | 1 |\n| a | y " +
		"| 3 |\n| b | x | 4 |\n\n" +
		"## One hit\n\nold\n\n## Soak\n\nflat\n\n## A launch\n\nnew\n\n## How this is measured\n\nnew way\n"
	if got != want {
		t.Errorf("merged:\n%s\nwant:\n%s", got, want)
	}
	if again := (&results{}).merge(got, written); again != want {
		t.Errorf("merged again:\n%s", again)
	}
}

func TestLinesOfThePageAreWrapped(t *testing.T) {
	long := strings.Repeat("words ", 40)
	page := wrap("# " + long + "\n\n" + long + "\n- " + long + "\n| " + long + "|\n")
	for line := range strings.Lines(page) {
		if n := len(strings.TrimRight(line, "\n")); n > columns && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "|") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(page, "\n  words") {
		t.Error("a point of a list goes on without being indented")
	}
	if strings.Join(strings.Fields(page), " ") != strings.Join(strings.Fields("# "+long+long+"- "+long+"| "+long+"|"), " ") {
		t.Error("words were lost")
	}
}

func TestABarIsAsLongAsItsShare(t *testing.T) {
	for share, want := range map[float64]string{-0.02: "▏", 0.01: "▏", 0.05: "█", 0.42: "████████", 9: strings.Repeat("█", barMost) + "…"} {
		if got := bar(share); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
}

// A run that measured nothing leaves every section and row of both documents.
func TestARunKeepsTheSectionsOfBothPages(t *testing.T) {
	for _, page := range (&results{}).pages() {
		old, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page.name))
		if err != nil {
			t.Fatal(err)
		}
		merged := (&results{}).merge(string(old), page.text)
		for line := range strings.Lines(string(old)) {
			if (strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "| ")) && !strings.Contains(merged, line) {
				t.Errorf("%s loses %s", page.name, line)
			}
		}
	}
}
