package cache

import (
	"fmt"
	"testing"
)

func TestWhatIsAskedForStaysAndTheRestGoes(t *testing.T) {
	r := NewRecent[int, string](100)
	r.Put(-1, "asked for")
	for i := range 10_000 {
		r.Put(i, fmt.Sprint(i))
		if _, ok := r.Get(-1); !ok {
			t.Fatalf("gone after %d others", i)
		}
		if r.Len() > 100 {
			t.Fatalf("%d entries of at most 100", r.Len())
		}
	}
	if value, ok := r.Get(9_999); !ok || value != "9999" {
		t.Errorf("the last is %q, %v", value, ok)
	}
	if _, ok := r.Get(0); ok {
		t.Error("the first is still there")
	}
	if int(r.evicted)+r.Len() != 10_001 {
		t.Errorf("%d evicted and %d there, of 10001", r.evicted, r.Len())
	}
}
