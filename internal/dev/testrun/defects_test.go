package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKnownDefectsAreReadFromTheirList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "CONTRIBUTING.md")
	const text = "# Contributing\n\n- `internal/testkit/e2e TestA`, once: slow\n- `./tracer TestB`, twice\n- `q TestC`, 5 times: x\n- `TestD`, once\n- TestE once\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"internal/testkit/e2e TestA": 1, "./tracer TestB": 2, "q TestC": 5}
	if got := knownDefects(path); !maps.Equal(got, want) {
		t.Errorf("known are %v, want %v", got, want)
	}
	if got := knownDefects(filepath.Join(t.TempDir(), "nothing")); len(got) != 0 {
		t.Errorf("without a list %v are known", got)
	}
}

func TestTheThirdSecondTryFailsTheRun(t *testing.T) {
	for _, c := range []struct {
		known map[string]int
		ok    bool
		says  string
	}{
		{nil, true, "a defect: add it to the list"},
		{map[string]int{"p B": 2}, true, "a defect: add it to the list"},
		{map[string]int{"p A": 1}, true, "(1 before): count this one there"},
		{map[string]int{"p A": 2}, false, "(2 before): mend it"},
		{map[string]int{"p A": 7}, false, "(7 before): mend it"},
	} {
		var out strings.Builder
		r := reportOf(t, &out, "run A", "fail A", "run C", "pass C", "output  FAIL", "fail ")
		r.known = c.known
		r.repeated(name{"p", "A"}, reportOf(t, &strings.Builder{}, "run A", "pass A", "pass "))
		if ok := r.finish(); ok != c.ok || !strings.Contains(out.String(), c.says) {
			t.Errorf("known %v: well %v, want %v; printed:\n%swant %q", c.known, ok, c.ok, out.String(), c.says)
		}
	}
	r := &report{known: map[string]int{"internal/testkit/e2e TestX": 2}}
	if _, ok := r.defect(name{"github.com/ebpfprof/ebpfprof/internal/testkit/e2e", "TestX"}); ok {
		t.Error("a package is not found by the end of its path")
	}
	if _, ok := r.defect(name{"github.com/ebpfprof/ebpfprof/internal/testkit/e2e", "TestXY"}); !ok {
		t.Error("another test is taken for it")
	}
}
