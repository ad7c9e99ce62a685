package tracer

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// plannedTorch is the plan of a real PyTorch, a small library's if there is none.
func plannedLibrary(t testing.TB) (*Plan, []catalog.Group) {
	t.Helper()
	groups := catalog.Groups()
	paths, _ := filepath.Glob("/usr/lib/*-linux-gnu/libc10.so.*")
	if len(paths) == 0 {
		t.Skip("no PyTorch here: run make deps")
	}
	e, err := symbolize.OpenELF(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	plan := PlanLibrary(e, paths[0], groups)
	if len(plan.Probes) == 0 {
		t.Fatalf("%s has no probes", paths[0])
	}
	return plan, groups
}

func TestAKeptPlanIsTheOneThatWasMade(t *testing.T) {
	plan, groups := plannedLibrary(t)
	c := planCache{filepath.Join(t.TempDir(), "plans")}
	if err := c.store("key", plan, groups); err != nil {
		t.Fatal(err)
	}
	probes, err := c.load("key", groups)
	if err != nil {
		t.Fatal(err)
	}
	if len(probes) != len(plan.Probes) {
		t.Fatalf("%d probes, want %d", len(probes), len(plan.Probes))
	}
	for i, want := range plan.Probes {
		got := probes[i]
		for _, reason := range []*error{&got.EntryErr, &want.EntryErr, &got.ExitErr, &want.ExitErr} {
			if *reason != nil {
				*reason = errors.New((*reason).Error())
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

func TestAPlanThatOthersCouldHaveWrittenIsNotUsed(t *testing.T) {
	plan, groups := plannedLibrary(t)
	c := planCache{filepath.Join(t.TempDir(), "plans")}
	if err := c.store("key", plan, groups); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := c.load("key", groups); !errors.Is(err, errNotOurs) {
		t.Errorf("from a directory that all may write: %v", err)
	}
	link := planCache{filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink(c.directory, link.directory); err != nil {
		t.Fatal(err)
	}
	if _, err := link.load("key", groups); !errors.Is(err, errNotOurs) {
		t.Errorf("through a symbolic link: %v", err)
	}
}

func TestTheOldestPlansAreRemoved(t *testing.T) {
	plan, groups := plannedLibrary(t)
	c := planCache{filepath.Join(t.TempDir(), "plans")}
	for i := range plansKept + 5 {
		if err := c.store(string(rune('A'+i)), plan, groups); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(c.directory); err != nil || len(entries) != plansKept {
		t.Errorf("%d plans, %v, want %d", len(entries), err, plansKept)
	}
	if _, err := c.load(string(rune('A'+plansKept+4)), groups); err != nil {
		t.Errorf("the youngest: %v", err)
	}
}

func FuzzKeptPlan(f *testing.F) {
	plan, groups := plannedLibrary(f)
	whole, err := encodePlan(plan, groups)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, contents []byte) {
		probes, err := decodePlan(contents, groups)
		if err == nil && len(probes) == 0 && len(contents) > 64 {
			t.Log("an empty plan")
		}
		for _, p := range probes {
			if p.Function == nil || p.Call == nil {
				t.Errorf("%+v", p)
			}
		}
	})
}

// A file that was torn has the build id of the whole one, and not its functions.
func TestHalfOfAFileHasAPlanOfItsOwn(t *testing.T) {
	whole, groups := plannedLibrary(t)
	contents, err := os.ReadFile(whole.Path)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(whole.Path))
	if err := os.WriteFile(path, contents[:len(contents)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	half, err := symbolize.OpenELF(path)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if half.BuildID() == "" || half.BuildID() != whole.file.BuildID() {
		t.Fatalf("build ids %q and %q", half.BuildID(), whole.file.BuildID())
	}
	a, okA := planKey(whole.file, whole.Path, groups)
	b, okB := planKey(half, path, groups)
	if !okA || !okB || a == b {
		t.Errorf("plans are kept under %q and %q", a, b)
	}
}
