package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publicPackages are those whose API keeps until the next minor version.
var publicPackages = []string{"analysis", "tracer", "tracer/event", "tracer/filter", "tracer/features", "tracer/catalog/spec", "output",
	"symbolize"}

// notPublic is what the comment of any other package says that other modules can import.
const notPublic = "no part of the public API"

// Whoever reads a package's documentation learns whether it keeps, and a public one shows
// how it is used.
func TestPackagesSayWhetherTheyArePublic(t *testing.T) {
	root := "../../.."
	seen := 0
	for _, top := range []string{"tracer", "symbolize", "analysis", "output"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			name, _ := filepath.Rel(root, path)
			comment, examples, program := describe(t, path)
			public := slices.Contains(publicPackages, name)
			switch {
			case comment == "" || program:
			case public && strings.Contains(comment, notPublic):
				t.Errorf("%s is public, and its comment says that it is not", name)
			case public && examples == 0:
				t.Errorf("%s is public and has no example", name)
			case !public && !strings.Contains(comment, notPublic):
				t.Errorf("the comment of %s does not say that it is %s", name, notPublic)
			}
			if public && comment != "" {
				seen++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != len(publicPackages) {
		t.Errorf("%d of %d public packages are there", seen, len(publicPackages))
	}
}

// describe reads the comment of a package and counts its examples.
func describe(t *testing.T, dir string) (comment string, examples int, program bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		program = program || f.Name.Name == "main"
		if !strings.HasSuffix(path, "_test.go") {
			comment += f.Doc.Text()
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
				examples++
			}
		}
	}
	return comment, examples, program
}
