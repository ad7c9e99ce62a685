package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// eachTest calls a function with each node of each test below a folder, and of what
// tests import from a harness.
func eachTest(t *testing.T, root string, look func(where string, node ast.Node)) {
	t.Helper()
	watched := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(filepath.Dir(path), "harness") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		watched++
		ast.Inspect(file, func(node ast.Node) bool {
			if node != nil {
				look(files.Position(node.Pos()).String(), node)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if watched < 40 {
		t.Fatalf("%s: only %d files found", root, watched)
	}
}

// How many tests run at a time is the caller's to say: go test -parallel.
func TestNoTestSetsHowManyRunAtATime(t *testing.T) {
	const flag = "test." + "parallel"
	eachTest(t, "../../..", func(where string, node ast.Node) {
		if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, flag) {
			t.Errorf("%s: %s: leave it to -parallel", where, text.Value)
		}
	})
}

// An end-to-end test says by harness.Beside which libraries it traces: two that trace
// the same one would be recorded in another way.
func TestEndToEndTestsAreParallelByTheHarnessOnly(t *testing.T) {
	eachTest(t, "../e2e", func(where string, node ast.Node) {
		selector, ok := node.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == "Parallel" && !strings.Contains(where, "e2e/harness/") {
			t.Errorf("%s: call harness.Beside, which makes the test parallel", where)
		}
	})
}
