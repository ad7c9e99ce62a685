package mlir

import "testing"

// stringsOf is bytecode with a section of strings.
func stringsOf(strings ...string) []byte {
	var lengths, data []byte
	for _, s := range strings {
		lengths = append([]byte{byte(len(s)+1)<<1 | 1}, lengths...)
		data = append(append(data, s...), 0)
	}
	section := append(append([]byte{byte(len(strings))<<1 | 1}, lengths...), data...)
	header := []byte("ML\xefR\x0dMLIR test\x00")
	return append(append(header, 0, byte(len(section))<<1|1), section...)
}

func TestModuleNames(t *testing.T) {
	for _, c := range []struct {
		name    string
		program []byte
		want    string
	}{
		{"bytecode", stringsOf("builtin", "stablehlo", "jit_update", "main"), "jit_update"},
		{"two candidates", stringsOf("jit_one", "jit_two"), ""},
		{"none", stringsOf("builtin", "main"), ""},
		{"text", []byte("module @jit_step attributes {mhlo.num_replicas = 1 : i32} {"), "jit_step"},
		{"text without a name", []byte("module {"), ""},
		{"cut short", stringsOf("builtin", "jit_update")[:20], ""},
		{"nothing", nil, ""},
	} {
		if got := ModuleName(c.program); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzModuleName(f *testing.F) {
	f.Add(stringsOf("builtin", "jit_update"))
	f.Add([]byte("module @jit_step {"))
	f.Fuzz(func(t *testing.T, b []byte) { ModuleName(b) })
}
