package torch

import (
	"testing"
)

// FuzzVTableClass: a name from a foreign symbol table never panics.
func FuzzVTableClass(f *testing.F) {
	f.Add("_ZTVN5torch8autograd9generated14AddmmBackward0E")
	f.Add("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE")
	f.Fuzz(func(t *testing.T, symbol string) {
		if class, ok := VTableClass(symbol); ok && class == "" {
			t.Fatalf("an empty class from %q", symbol)
		}
		if class, method, ok := OperatorClass(symbol); ok && (class == "" || method == "") {
			t.Fatalf("an empty operator from %q", symbol)
		}
	})
}

// FuzzSchemas: the names that are found are no longer than the constants that they
// are found in, and each constant has one at the most.
func FuzzSchemas(f *testing.F) {
	f.Add([]byte("\x00add.Tensor(Tensor self) -> Tensor\x00prim::copy(int a) -> int\x00"))
	f.Add([]byte(") -> ) -> ) -> "))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, bytes := 0, 0
		eachSchema(data, func(s schema) { found++; bytes += len(s.name) + len(s.returns) })
		if bytes > len(data) || found > len(data)/6 {
			t.Fatalf("%d names of %d bytes in %d", found, bytes, len(data))
		}
	})
}
