package tracer

import "testing"

func TestWhatIsGivenUpOnIsTheOldestAndCounted(t *testing.T) {
	w := waiting[int, string]{half: 2}
	for i, value := range []string{"a", "b", "c", "d", "e"} {
		w.put(i, value)
	}
	for i, want := range []string{"", "", "c", "d", "e"} {
		if got, ok := w.get(i); got != want || ok != (want != "") {
			t.Errorf("%d: got %q, %v, want %q", i, got, ok, want)
		}
	}
	if w.given != 2 {
		t.Errorf("%d given up on, want 2", w.given)
	}
	if got, ok := w.take(3); got != "d" || !ok {
		t.Errorf("taken %q, %v", got, ok)
	}
	if _, ok := w.take(3); ok {
		t.Error("taken twice")
	}
	w.put(2, "again")
	if got, _ := w.take(2); got != "again" {
		t.Errorf("replaced: %q", got)
	}
	if _, ok := w.get(2); ok {
		t.Error("the replaced one is still there")
	}
}
