package tracer

import (
	"fmt"
	"testing"
)

func TestWhatIsAskedForStaysAndTheRestGoes(t *testing.T) {
	r := newRecent[int, string](100)
	r.put(-1, "asked for")
	for i := range 10_000 {
		r.put(i, fmt.Sprint(i))
		if _, ok := r.get(-1); !ok {
			t.Fatalf("gone after %d others", i)
		}
		if r.len() > 100 {
			t.Fatalf("%d entries of at most 100", r.len())
		}
	}
	if value, ok := r.get(9_999); !ok || value != "9999" {
		t.Errorf("the last is %q, %v", value, ok)
	}
	if _, ok := r.get(0); ok {
		t.Error("the first is still there")
	}
	if int(r.evicted)+r.len() != 10_001 {
		t.Errorf("%d evicted and %d there, of 10001", r.evicted, r.len())
	}
}
