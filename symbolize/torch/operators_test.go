package torch

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf/elftest"
)

func TestOperatorClassSplitsTheSymbol(t *testing.T) {
	for symbol, want := range map[string][2]string{
		"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE":               {"add_Tensor", "call"},
		"_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_": {"add_Tensor", "redispatch"},
		"_ZN2at4_ops14__and___Scalar4callERKNS_6TensorERKN3c106ScalarE":              {"__and___Scalar", "call"},
		"_ZN2at4_ops10add_Tensor":          {},
		"_ZN2at4_ops99add_Tensor4callE":    {},
		"_ZN2at4_opsE":                     {},
		"_ZN2at4_ops10add_Tensor4call":     {},
		"_ZN2at4add_ERNS_6TensorE":         {},
		"_ZZN2at4_ops10add_Tensor4callEvE": {},
	} {
		class, method, ok := OperatorClass(symbol)
		if class != want[0] || method != want[1] || ok != (want[0] != "") {
			t.Errorf("OperatorClass(%q) = %q, %q, %v", symbol, class, method, ok)
		}
	}
}

func TestEveryOperatorOfLibtorchHasItsSchema(t *testing.T) {
	for _, path := range testelf.Libtorchs(t) {
		names := OperatorNames(elftest.Open(t, path))
		for class, name := range names {
			if !name.Exact {
				t.Errorf("%s: %s is guessed to be %+v", path, class, name)
			}
			joined := strings.TrimPrefix(name.Op, "aten::")
			if name.Overload != "" {
				joined += "_" + name.Overload
			}
			if joined != class {
				t.Errorf("%s: %s is %+v", path, class, name)
			}
		}
		if len(names) < 2900 {
			t.Errorf("%s: %d operators", path, len(names))
		}
		t.Logf("%s: %d operators", testelf.ShortName(path), len(names))
	}
}

// TestOperatorNamesAreThoseOfTheDispatcher asks PyTorch itself for its schemas.
func TestOperatorNamesAreThoseOfTheDispatcher(t *testing.T) {
	for _, path := range testelf.Libtorchs(t) {
		python := "/usr/bin/python3"
		if root, _, ok := strings.Cut(path, "/lib/python3"); ok {
			python = filepath.Join(root, "bin/python")
		}
		const script = `import torch
for s in torch._C._jit_get_all_schemas():
    print(s.name + " " + s.overload_name)`
		listing, err := exec.Command(python, "-c", script).Output()
		if err != nil {
			t.Logf("%s: %s cannot import torch: %v", path, python, err)
			continue
		}
		schemas, byClass := map[OperatorName]bool{}, map[string][]string{}
		for line := range strings.Lines(string(listing)) {
			op, overload, _ := strings.Cut(strings.TrimSpace(line), " ")
			schemas[OperatorName{Op: op, Overload: overload, Exact: true}] = true
			if class, ok := strings.CutPrefix(op, "aten::"); ok {
				if overload != "" {
					class += "_" + overload
				}
				byClass[class] = append(byClass[class], line)
			}
		}
		names, unknown, ambiguous := OperatorNames(elftest.Open(t, path)), 0, 0
		for class, name := range names {
			if returns := name.Returns; !strings.HasPrefix(returns, "Tensor") && !strings.HasPrefix(returns, "(") && strings.ContainsAny(returns,
				" (") {
				t.Errorf("%s: %s returns %q", path, class, returns)
			}
			name.Returns = ""
			if !schemas[name] {
				t.Errorf("%s: the dispatcher knows no %+v (%s)", path, name, class)
				unknown++
			}
			if len(byClass[class]) > 1 {
				t.Errorf("%s: %s could be any of %q, resolved as %+v", path, class, byClass[class], name)
				ambiguous++
			}
		}
		t.Logf("%s: %d operators, %d unknown to the dispatcher, %d ambiguous", testelf.ShortName(path), len(names), unknown, ambiguous)
	}
}

func TestOperatorsWithoutSchemasAreSplitByStrings(t *testing.T) {
	for _, path := range testelf.Libtorchs(t) {
		e := elftest.Open(t, path)
		exact := OperatorNames(e)
		guessed := map[string]OperatorName{}
		for class := range exact {
			guessed[class] = OperatorName{}
		}
		resolveByStrings(guessed, e.ReadOnlyData())
		var wrong []string
		for class, name := range exact {
			if guessed[class].Exact {
				t.Errorf("%s: a guess says it is exact", class)
			}
			if guessed[class].Op != name.Op {
				wrong = append(wrong, class+" as "+guessed[class].Op)
			}
		}
		slices.Sort(wrong)
		t.Logf("%s: %d of %d operators wrong without schemas: %.300q", testelf.ShortName(path), len(wrong), len(exact),
			wrong[:min(len(wrong), 8)])
		if len(wrong) > len(exact)/100 {
			t.Errorf("%s: %d of %d operators wrong without schemas", path, len(wrong), len(exact))
		}
	}
}

func TestSchemaNamesAreFoundInStringConstants(t *testing.T) {
	data := []byte("\x00add.Tensor(Tensor self, Tensor(a!) out) -> Tensor(a!)\x00noise) -> \x00" +
		"prim::permute_copy(Tensor self, int[] dims) -> Tensor\x00f(x)\x00a b(c) -> d\x00.x(c) -> d\x00a.b.c(d) -> e\x00sin(Tensor self) " +
		"-> Tensor\x00")
	whole, tails := map[string]string{}, map[string]string{}
	eachSchema(data, func(s schema) {
		if s.whole {
			whole[s.name] = s.returns
		} else {
			tails[s.name] = s.returns
		}
	})
	if !maps.Equal(whole, map[string]string{"add.Tensor": "Tensor(a!)", "sin": "Tensor"}) ||
		!maps.Equal(tails, map[string]string{"permute_copy": "Tensor"}) {
		t.Errorf("whole %v, tails %v", whole, tails)
	}
	eachSchema(bytes.Repeat([]byte(") -> "), 1000), func(s schema) { t.Errorf("a name in noise: %q", s.name) })
}

func TestSectionHeadersAreNotNeeded(t *testing.T) {
	data := bytes.Clone(testelf.Tiny(t, "tiny-stripped.so"))
	clear(data[40:48]) // e_shoff
	clear(data[60:64]) // e_shnum, e_shstrndx
	e, err := elf.New(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if names := OperatorNames(e); names["add_Tensor"] != (OperatorName{Op: "aten::add", Overload: "Tensor", Returns: "Tensor", Exact: true}) {
		t.Errorf("OperatorNames = %v", names)
	}
}
