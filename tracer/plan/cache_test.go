package plan

import (
	"bytes"
	debugelf "debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// plannedLibrary is the plan of a real library of PyTorch's.
func plannedLibrary(t testing.TB) (*Plan, []spec.Group) {
	t.Helper()
	groups := catalog.Groups()
	paths, _ := filepath.Glob("/usr/lib/*-linux-gnu/libc10.so.*")
	if len(paths) == 0 {
		t.Skip("no PyTorch here: run make deps")
	}
	e, err := elf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	plan := Library(e, paths[0], groups)
	if len(plan.Probes) == 0 {
		t.Fatalf("%s has no probes", paths[0])
	}
	return plan, groups
}

func TestAKeptPlanIsTheOneThatWasMade(t *testing.T) {
	plan, groups := plannedLibrary(t)
	c := Cache{directory: filepath.Join(t.TempDir(), "plans")}
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

// What a plan that is cut short loses is detail: the anchors have their turn first.
func TestTheAnchorsArePlannedFirst(t *testing.T) {
	groups := slices.Clone(catalog.Groups())
	paths, _ := filepath.Glob("/usr/lib/*-linux-gnu/libtorch_cpu.so.*")
	if len(paths) == 0 {
		t.Skip("no PyTorch here: make deps")
	}
	e, err := elf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slices.Reverse(groups)
	plan, tiers := Library(e, paths[0], groups), map[spec.Tier]int{}
	for i := range plan.Probes {
		tier := plan.Probes[i].Group.Tier
		if tiers[tier]++; tier == spec.Anchor && tiers[spec.Detail] > 0 {
			t.Fatalf("%s comes after %d details", plan.Probes[i].Symbol, tiers[spec.Detail])
		}
	}
	if tiers[spec.Anchor] == 0 || tiers[spec.Detail] == 0 {
		t.Errorf("%v", tiers)
	}
}

func TestAPlanWithoutItsRestIsNotKept(t *testing.T) {
	plan, groups := plannedLibrary(t)
	plan.Rest = &Rest{}
	c := Cache{directory: filepath.Join(t.TempDir(), "plans")}
	if err := c.store("key", plan, groups); !errors.Is(err, errNoTurn) {
		t.Errorf("storing it gives %v", err)
	}
	if _, err := c.load("key", groups); err == nil {
		t.Error("it is loaded again")
	}
}

func TestAPlanThatOthersCouldHaveWrittenIsNotUsed(t *testing.T) {
	plan, groups := plannedLibrary(t)
	c := Cache{directory: filepath.Join(t.TempDir(), "plans")}
	if err := c.store("key", plan, groups); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := c.load("key", groups); !errors.Is(err, errNotOurs) {
		t.Errorf("from a directory that all may write: %v", err)
	}
	link := Cache{directory: filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink(c.directory, link.directory); err != nil {
		t.Fatal(err)
	}
	if _, err := link.load("key", groups); !errors.Is(err, errNotOurs) {
		t.Errorf("through a symbolic link: %v", err)
	}
}

func TestTheOldestPlansAreRemoved(t *testing.T) {
	plan, groups := plannedLibrary(t)
	c := Cache{directory: filepath.Join(t.TempDir(), "plans")}
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

// A file that was torn has the build id of the whole one, and not its functions. One
// with a symbol moved has its size, too: it is made by a user, who has it planned
// first, and its plan would put breakpoints into the middle of instructions of
// everyone else's.
func TestAForgedLibraryDoesNotGiveItsPlanToTheGenuineOne(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector, which has nothing to find in it: make test-kernel runs it without")
	}
	found, _ := filepath.Glob("/usr/lib/*-linux-gnu/libtorch_cpu.so.1.13.0")
	if len(found) == 0 {
		t.Skip("no libtorch here: run make deps")
	}
	genuine, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	directory := forEveryUser(t)
	t.Cleanup(func() { os.RemoveAll(directory) })
	groups := catalog.Groups()
	path := filepath.Join(directory, "libtorch_cpu.so.1.13.0")
	for name, forged := range map[string][]byte{"moved symbol": withSymbolMoved(t, found[0], genuine), "half": genuine[:len(genuine)/2]} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, forged, 0o755); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() == 0 {
				if err := os.Chown(path, 65534, 65534); err != nil {
					t.Fatal(err)
				}
			}
			c := Cache{directory: filepath.Join(t.TempDir(), "plans")}
			places := func(path string, plan func(e *elf.File) *Plan) map[string]uint64 {
				e, err := elf.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				places := map[string]uint64{}
				for _, p := range plan(e).Probes {
					places[p.Symbol] = p.Address
				}
				return places
			}
			cached := func(e *elf.File) *Plan { return c.Plan(e, path, groups) }
			want := places(found[0], func(e *elf.File) *Plan { return Library(e, path, groups) })
			if reflect.DeepEqual(places(path, cached), want) {
				t.Fatal("the forged library is planned like the genuine one")
			}
			for range 2 { // planned, and perhaps kept
				got := places(found[0], cached)
				for symbol, address := range want {
					if got[symbol] != address {
						t.Fatalf("%s of the genuine library is planned at %#x, want %#x", symbol, got[symbol], address)
					}
				}
			}
			if plans, err := os.ReadDir(c.directory); err != nil || len(plans) == 0 {
				t.Errorf("no plan was kept, of neither: %v", err)
			}
		})
	}
}

// withSymbolMoved is a library in which one operator's symbol is three bytes on.
func withSymbolMoved(t *testing.T, path string, contents []byte) []byte {
	t.Helper()
	file, err := debugelf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range symbols {
		if strings.HasPrefix(s.Name, "_ZN2at4_ops5addmm4callE") {
			forged := bytes.Clone(contents)
			at := file.SectionByType(debugelf.SHT_DYNSYM).Offset + uint64(i+1)*debugelf.Sym64Size + 8 // st_value; the first symbol is not listed
			if got := binary.LittleEndian.Uint64(forged[at:]); got != s.Value {
				t.Fatalf("the symbol is at %#x, found %#x", s.Value, got)
			}
			binary.LittleEndian.PutUint64(forged[at:], s.Value+3)
			return forged
		}
	}
	t.Fatal("no addmm")
	return nil
}

// forEveryUser is a directory that every user can enter.
func forEveryUser(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
