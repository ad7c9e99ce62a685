package cache

import "testing"

func TestWhatIsGivenUpOnIsTheOldestAndCounted(t *testing.T) {
	w := Pending[int, string]{Half: 2}
	for i, value := range []string{"a", "b", "c", "d", "e"} {
		w.Put(i, value)
	}
	for i, want := range []string{"", "", "c", "d", "e"} {
		if got, ok := w.Get(i); got != want || ok != (want != "") {
			t.Errorf("%d: got %q, %v, want %q", i, got, ok, want)
		}
	}
	if w.Dropped != 2 {
		t.Errorf("%d given up on, want 2", w.Dropped)
	}
	if got, ok := w.Take(3); got != "d" || !ok {
		t.Errorf("taken %q, %v", got, ok)
	}
	if _, ok := w.Take(3); ok {
		t.Error("taken twice")
	}
	w.Put(2, "again")
	if got, _ := w.Take(2); got != "again" {
		t.Errorf("replaced: %q", got)
	}
	if _, ok := w.Get(2); ok {
		t.Error("the replaced one is still there")
	}
}
