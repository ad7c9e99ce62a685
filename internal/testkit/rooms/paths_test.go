package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// roots are the directories of our sources.
const roots = `(?:tracer|internal|symbolize|output|bpf|cmd|analysis)`

var (
	// pathOfOurs is a path of the source tree, as prose names it: "internal/dataset", "bpf/wire.h".
	pathOfOurs = regexp.MustCompile(`(?:^|[^A-Za-z0-9_./-])(` + roots + `(?:/[a-z0-9_]+)+(?:\.(?:go|bpf\.c|c|h|sql|yaml|md))?)\b`)
	// fileOfOurs is a file that only a project in Go and BPF has.
	fileOfOurs = regexp.MustCompile(`(?:^|[^A-Za-z0-9_./-])([a-z0-9_]+(?:\.go|\.bpf\.[ch]))\b`)
	comments   = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
)

// sources calls visit with each file of the source tree that has one of the extensions.
func sources(t *testing.T, visit func(path string, text []byte), extensions ...string) {
	t.Helper()
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || name == "node_modules" || len(name) > 2 && name[0] == '.' {
				return fs.SkipDir
			}
			return nil
		}
		for _, extension := range extensions {
			if strings.HasSuffix(path, extension) {
				text, err := os.ReadFile(path)
				if err == nil {
					visit(strings.TrimPrefix(filepath.ToSlash(path), "../../../"), text)
				}
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A comment in Go or C that names a file or a directory of ours names one that exists.
func TestPathsInCommentsExist(t *testing.T) {
	files := map[string]bool{}
	sources(t, func(path string, _ []byte) { files[filepath.Base(path)] = true }, ".go", ".c", ".h")
	found := 0
	sources(t, func(path string, text []byte) {
		for _, comment := range comments.FindAllString(string(text), -1) {
			for _, match := range pathOfOurs.FindAllStringSubmatch(comment, -1) {
				found++
				if _, err := os.Stat(filepath.Join("../../..", match[1])); err != nil {
					t.Errorf("%s: a comment names %s, which does not exist", path, match[1])
				}
			}
			for _, match := range fileOfOurs.FindAllStringSubmatch(comment, -1) {
				found++
				if !files[match[1]] && !strings.Contains(comment, "strobelight") { // which has .bpf.c files, too
					t.Errorf("%s: a comment names %s, which does not exist", path, match[1])
				}
			}
		}
	}, ".go", ".c", ".h")
	if found < 20 {
		t.Errorf("comments name only %d paths", found)
	}
}

// A user has no source tree: no string of the binaries names a file or directory of it.
func TestNoTextOfTheBinariesNamesASource(t *testing.T) {
	read := 0
	sources(t, func(path string, text []byte) {
		developers := strings.HasPrefix(path, "internal/dev/") || strings.HasPrefix(path, "internal/testkit/")
		if developers || strings.HasSuffix(path, "_test.go") || generator(path) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, is := n.(*ast.ImportSpec); is {
				return false
			}
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			read++
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, pattern := range []*regexp.Regexp{pathOfOurs, fileOfOurs} {
				if match := pattern.FindStringSubmatch(value); match != nil {
					t.Errorf("%s: a string names %s: users have no source tree", path, match[1])
				}
			}
			return true
		})
	}, ".go")
	if read < 10_000 {
		t.Errorf("only %d strings were read", read)
	}
}

// generator reports whether a file is of a program that `go generate` runs.
func generator(path string) bool {
	for _, directory := range []string{"output/schemadoc/", "symbolize/cpython/offsetof/"} {
		if strings.HasPrefix(path, directory) {
			return true
		}
	}
	return false
}
