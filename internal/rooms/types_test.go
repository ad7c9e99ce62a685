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

// mostMembers is how many methods, and how many fields, a type of the tracer may have:
// what has more does more than its name says.
const mostMembers = 15

// large are the types that have more, with how many they may have and why.
var large = map[string]struct {
	most   int
	reason string
}{
	// Rows and tables: a field a column, or a line of a data sheet.
	"tracer/event.Span":            {16, "a row of span: a field a column"},
	"tracer/event.Detail":          {37, "the rarer columns of span"},
	"tracer/event.Memory":          {22, "a row of memory"},
	"tracer/event.Process":         {19, "a row of process"},
	"tracer/event.Recording":       {19, "a row of session"},
	"tracer/catalog/spec.Function": {41, "a row of the catalog: what is known of one function"},
	"tracer/plan.Probe":            {16, "what was planned for one function: a field an answer"},
	"tracer/plan.keptProbe":        {16, "the same on disk"},
	"tracer/site.insn":             {21, "what a decoder says of one instruction"},
	"tracer/site.encoding":         {24, "what tells one instruction from another on one architecture"},
	"tracer.Options":               {23, "what a user may ask for: a field a flag"},
	// One thing each, asked in many ways.
	"tracer/process.Process": {22, "what /proc says of one process, a question a method; it changes nothing"},
	"tracer/site.program":    {21, "the control-flow graph of one function, and what is asked of it"},
	"tracer/accel.Arguments": {19, "the captured values of one call, by what they are asked for"},
	"tracer/accel.Call":      {29, "one call into a runtime, with a method for each effect of the catalog"},
}

// membersOf counts the methods and the fields of the types below a folder.
func membersOf(t *testing.T, root string) (methods, fields map[string]int) {
	t.Helper()
	methods, fields = map[string]int{}, map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../")) + "."
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[of+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						if s, ok := named.Type.(*ast.StructType); ok {
							fields[of+named.Name.Name] = countFields(s)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return methods, fields
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // of a generic type
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func countFields(s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		n += max(1, len(field.Names))
	}
	return n
}

func TestNoTypeIsTooLarge(t *testing.T) {
	methods, fields := membersOf(t, "../../tracer")
	if len(methods) < 50 || len(fields) < 100 {
		t.Fatalf("only %d types with methods and %d with fields found", len(methods), len(fields))
	}
	for what, counts := range map[string]map[string]int{"methods": methods, "fields": fields} {
		for name, n := range counts {
			if limit := max(mostMembers, large[name].most); n > limit {
				t.Errorf("%s has %d %s, %d at the most: cut it at its joints, or give it a reason in the table of this test", name, n, what, limit)
			}
		}
	}
	for name, entry := range large {
		if max(methods[name], fields[name]) <= mostMembers {
			t.Errorf("%s is not large any more: take it out of the table", name)
		}
		if entry.reason == "" {
			t.Errorf("%s has no reason", name)
		}
	}
}
