package rooms

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// sourcePath is a file or directory of the code, as the docs name it.
var sourcePath = regexp.MustCompile("`((?:tracer|internal|symbolize|output|bpf|cmd|testdata|deploy)/[A-Za-z0-9_./-]+)`")

// A reader who follows the docs into the code finds what they name.
func TestPathsInTheDocsExist(t *testing.T) {
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, doc := range append(docs, "../../README.md") {
		contents, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range sourcePath.FindAllSubmatch(contents, -1) {
			found++
			if _, err := os.Stat(filepath.Join("../..", string(match[1]))); err != nil {
				t.Errorf("%s names %s, which is not there", filepath.Base(doc), match[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d paths are named", found)
	}
}
