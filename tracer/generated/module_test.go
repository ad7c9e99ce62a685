package generated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

// module is what Inductor of PyTorch 2.15 writes, shortened.
const source = `# AOT ID: ['0_forward']
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

cpp_fused_add_gelu_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{
    cpp_fused_add_gelu_0(in_ptr0);
}
''')

cpp_fused_view_1 = async_compile.cpp_pybinding(['float*'], '''x''')

class Runner:
    def call(self, args):
        # Topologically Sorted Source Nodes: [h], Original ATen: [aten.add, aten.addmm]
        extern_kernels.addmm(a, b, c, out=buf8)
        cpp_fused_add_gelu_0(buf0, buf1)
        # Topologically Sorted Source Nodes: [h, g], Original ATen: [aten._unsafe_view, prims.iota]
        cpp_fused_view_1(buf2)
        del buf2
        cpp_fused_unknown_2(buf3)
        # Original ATen: [aten.add
        cpp_fused_view_1(buf2)
        # Original ATen: [aten.add; import os]
        cpp_fused_view_1(buf2)
`

// lineOf is the n-th line that has a text.
func lineOf(t *testing.T, text string, n int) int {
	t.Helper()
	for i, line := range strings.Split(source, "\n") {
		if strings.Contains(line, text) {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	t.Fatalf("no line with %q", text)
	return 0
}

func TestTheLinesThatCallKernelsNameThem(t *testing.T) {
	want := map[int]Kernel{
		lineOf(t, "    cpp_fused_add_gelu_0(in_ptr0);", 1): {Name: "cpp_fused_add_gelu_0"}, // no call, and no line of Python code
		lineOf(t, "cpp_fused_add_gelu_0(buf0", 1):          {Name: "cpp_fused_add_gelu_0"},
		lineOf(t, "cpp_fused_view_1(buf2", 1):              {Name: "cpp_fused_view_1", Operators: []string{"aten::_unsafe_view", "prims::iota"}},
		lineOf(t, "cpp_fused_view_1(buf2", 2):              {Name: "cpp_fused_view_1"},
		lineOf(t, "cpp_fused_view_1(buf2", 3):              {Name: "cpp_fused_view_1"},
	}
	if got := Kernels([]byte(source)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A module is the job's file, which may hold anything.
func TestWhatIsKeptOfAModuleIsBounded(t *testing.T) {
	define := func(name string) string { return name + " = async_compile.cpp_pybinding(['float*'], '')\n" }
	var many strings.Builder
	for i := range 4 * maxKernels {
		fmt.Fprintf(&many, "%s  k%d(a)\n", define(fmt.Sprintf("k%d", i)), i)
	}
	long := strings.Repeat("k", maxName+1)
	for what, c := range map[string]struct {
		source string
		most   int
	}{
		"many kernels": {many.String(), maxKernels},
		"many calls":   {define("k") + strings.Repeat(" k(a)\n", 4*maxCalls), maxCalls},
		"a long name":  {define(long) + " " + long + "(a)\n", 0},
		"no names":     {define("a b") + define("") + define("9k") + define("k\x1b[2J") + " a b(c)\n (c)\n 9k(c)\n k\x1b[2J(c)\n", 0},
		"binary":       {string(bytes.Repeat([]byte{0, 0xff, '\n', ' ', '('}, 1<<16)), 0},
		"one line":     {strings.Repeat("(", 1<<20), 0},
		"nothing":      {"", 0},
	} {
		if got := Kernels([]byte(c.source)); len(got) != c.most {
			t.Errorf("%s: %d calls, want %d", what, len(got), c.most)
		}
	}
	comment := " # Original ATen: [" + strings.Repeat("aten.add, ", 2*maxOperators) + "aten.mul]\n"
	if got := Kernels([]byte(define("k") + comment + " k(a)\n")); len(got) != 1 || got[3].Operators != nil {
		t.Errorf("a comment of %d bytes: %+v", len(comment), got)
	}
}

// The names are those of a transformer's kernels (PyTorch 2.15).
func TestANameTellsTheOperators(t *testing.T) {
	operators := map[string]bool{}
	for _, name := range strings.Fields("_log_softmax _log_softmax_backward_data _unsafe_view add arange backward data embedding gelu " +
		"gelu_backward layer_norm log native_layer_norm native_layer_norm_backward nll_loss_backward scalar_tensor softmax sum view") {
		operators[name] = true
	}
	for kernel, want := range map[string]string{
		"cpp_fused_add_embedding_native_layer_norm_0":             "add embedding native_layer_norm",
		"cpp_fused__unsafe_view_gelu_gelu_backward_sum_view_12":   "_unsafe_view gelu gelu_backward sum view",
		"cpp_fused__log_softmax__log_softmax_backward_data_add_3": "_log_softmax _log_softmax_backward_data add",
		"cpp_fused__unsafe_view_add_native_layer_norm_native_layer_norm_backward_4": "_unsafe_view add native_layer_norm " +
			"native_layer_norm_backward",
		"cpp_fused_arange_nll_loss_backward_scalar_tensor_view_0": "arange nll_loss_backward scalar_tensor view",
		"triton_poi_fused_add_gelu_3":                             "add gelu",
		"triton_per_fused__log_softmax_0":                         "_log_softmax",
		"triton_poi_fused_add_gelu":                               "", // of the job's own
		"triton_fused_add_0":                                      "",
		"triton_my_own_fused_add_0":                               "",
		"cpp_fused_log_softmax_0":                                 "log softmax",
		"cpp_fused_softmax_log_0":                                 "", // not in their order
		"cpp_fused_add_add_0":                                     "", // twice
		"cpp_fused_add_frobnicate_0":                              "",
		"cpp_fused_0":                                             "",
		"cpp_fused_add":                                           "",
		"cpp_fused_add_x":                                         "",
		"cpp_fused_":                                              "",
		"":                                                        "",
		"cpp_fused_" + strings.Repeat("add_", 1<<12) + "0": "",
	} {
		var want2 []string
		for _, name := range strings.Fields(want) {
			want2 = append(want2, "aten::"+name)
		}
		if got := Operators(kernel, func(name string) bool { return operators[name] }); !reflect.DeepEqual(got, want2) {
			t.Errorf("%.80s: %q, want %q", kernel, got, want2)
		}
	}
}

func TestAModuleIsReadOnce(t *testing.T) {
	reads := 0
	m := NewModules(Files{Read: func(pid int, path string, limit int64) ([]byte, error) {
		reads++
		if path != "module.py" || pid != 7 {
			return nil, fs.ErrNotExist
		}
		return []byte(source), nil
	}})
	known := func(name string) bool { return name == "add" || name == "gelu" }
	call := lineOf(t, "cpp_fused_add_gelu_0(buf0", 1)
	for range 3 {
		k, ok := m.Kernel(7, "module.py", call, known)
		if !ok || k.Name != "cpp_fused_add_gelu_0" || !reflect.DeepEqual(k.Operators, []string{"aten::add", "aten::gelu"}) {
			t.Errorf("%+v, %v", k, ok)
		}
		for _, line := range []int{-1, 0, call + 1, 1 << 30} {
			if k, ok := m.Kernel(7, "module.py", line, known); ok && k.Name != "cpp_fused_view_1" {
				t.Errorf("line %d calls %+v", line, k)
			}
		}
		if k, ok := m.Kernel(8, "module.py", call, known); ok {
			t.Errorf("a file that cannot be read calls %+v", k)
		}
	}
	if reads != 3 { // of the one that is not there at its first and second call
		t.Errorf("%d reads of two files", reads)
	}
	if _, err := m.files.Read(1, "", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzKernels: whatever a module holds, names are names.
func FuzzKernels(f *testing.F) {
	f.Add([]byte(source))
	f.Fuzz(func(t *testing.T, module []byte) {
		for line, k := range Kernels(module) {
			if line < 1 || !isName([]byte(k.Name)) || len(k.Operators) > maxOperators {
				t.Fatalf("line %d: %+v", line, k)
			}
			Operators(k.Name, func(name string) bool { return len(name)%2 == 0 })
		}
	})
}
