package rooms

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sourcePath is a file or directory of the code, as the docs name it.
var sourcePath = regexp.MustCompile("`((?:tracer|internal|symbolize|output|bpf|cmd|testdata|deploy)/[A-Za-z0-9_./-]+)`")

// readDocs reads the documents, by their names.
func readDocs(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string][]byte{}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		paths = append(paths, filepath.Join("../../..", name))
	}
	for _, path := range paths {
		if docs[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return docs
}

// A reader who follows the docs into the code finds what they name.
func TestPathsInTheDocsExist(t *testing.T) {
	found := 0
	for doc, contents := range readDocs(t) {
		for _, match := range sourcePath.FindAllSubmatch(contents, -1) {
			found++
			if _, err := os.Stat(filepath.Join("../../..", string(match[1]))); err != nil {
				t.Errorf("%s names %s, which is not there", doc, match[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d paths are named", found)
	}
}

var (
	testName   = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark|Example)[A-Z][A-Za-z0-9]+)`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)[A-Z][A-Za-z0-9_]*)\(`)
	roomOfTest = regexp.MustCompile("`((?:tracer|internal|symbolize|output|bpf|cmd)[a-z0-9/]*)`: `(Test[A-Za-z0-9]+)`")
)

// A claim that a test holds is held by a test that is there, in the package that is
// named. A name may be the beginning of several, as for -run.
func TestTestsInTheDocsExist(t *testing.T) {
	where := map[string][]string{}
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllSubmatch(source, -1) {
			where[string(match[1])] = append(where[string(match[1])], strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for doc, contents := range readDocs(t) {
		for _, match := range testName.FindAllSubmatch(contents, -1) {
			found++
			begins := func(name string) bool { return strings.HasPrefix(name, string(match[1])) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(where)), begins) {
				t.Errorf("%s names %s, which is not there", doc, match[1])
			}
		}
		for _, match := range roomOfTest.FindAllSubmatch(contents, -1) {
			if room, name := string(match[1]), string(match[2]); len(where[name]) > 0 && !slices.Contains(where[name], room) {
				t.Errorf("%s says that %s is in %s; it is in %v", doc, name, room, where[name])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d tests are named", found)
	}
}
