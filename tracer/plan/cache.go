package plan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// Cache keeps the plans of large libraries from one recording to the next:
// PyTorch's takes some tenths of a second, in which a job that was just started
// may call what is not probed yet. The zero Cache keeps nothing.
//
// A plan says where breakpoints go in other processes. So it is taken from the
// cache only if nobody but the tracer's own user can have written it.
type Cache struct {
	directory string
	most      time.Duration // of the CPU, instead of maxPlanning
}

// Hasty is a Cache that keeps nothing, whose plans have so little of the CPU: for tests.
func Hasty(most time.Duration) Cache { return Cache{most: most} }

func NewCache() Cache {
	directory, err := os.UserCacheDir()
	if err != nil {
		return Cache{}
	}
	return Cache{directory: filepath.Join(directory, "ebpfprof", "plans")}
}

// worthKeeping is what a plan must have taken to be kept.
const worthKeeping = 50 * time.Millisecond

// worthHashing is how large the symbols of a file that others can write must be
// for a look into the cache: to plan from less is faster than to hash the file.
const worthHashing = 8 << 20

// Plan is Begin of groups of the catalog.
func (c Cache) Plan(e *elf.File, path string, groups []spec.Group) *Plan {
	groups, asked := cutAsked(groups)
	plan := c.ofCatalog(e, path, groups)
	plan.ask(asked, cmp.Or(c.most, maxPlanning))
	return plan
}

func (c Cache) ofCatalog(e *elf.File, path string, groups []spec.Group) *Plan {
	most := cmp.Or(c.most, maxPlanning)
	if c.directory == "" {
		return Begin(e, path, groups, most)
	}
	hold, held := e.Hold()
	if !held {
		return Begin(e, path, groups, most)
	}
	begun := time.Now()
	released := false
	release := func() bool { released = true; return hold.Release() }
	defer func() {
		if !released { // the file was cut short under its reader
			release()
		}
	}()
	key, ok := planKey(hold, e, path, groups)
	if ok {
		if probes, err := c.load(key, groups); err == nil {
			return &Plan{Path: path, BuildID: e.BuildID(), ELF: e, Begun: begun, Probes: probes}
		}
	}
	plan := Begin(e, path, groups, most)
	if unchanged := release(); ok && unchanged && time.Since(begun) > worthKeeping {
		_ = c.store(key, plan, groups) // next time then
	}
	return plan
}

// ownFile is the file that runs: where it was begun from another version may lie by now,
// which would read the plans of this one for its own.
func ownFile() (os.FileInfo, error) { return os.Stat("/proc/self/exe") }

// planKey names a plan: the file, which no other file can pose as (a build id can
// be copied, and so can a size), what is looked for in it, and the tracer that does.
func planKey(hold *elf.Hold, e *elf.File, path string, groups []spec.Group) (key string, ok bool) {
	tracer, err := ownFile()
	if err != nil {
		return "", false
	}
	if !hold.RootOnly() && e.SymbolBytes() < worthHashing {
		return "", false
	}
	file, ok := hold.Key(e.Contents())
	if !ok {
		return "", false
	}
	sum := sha256.New()
	fmt.Fprintln(sum, file, e.Machine(), filepath.Base(path), tracer.Size(), tracer.ModTime().UnixNano())
	for _, g := range groups {
		fmt.Fprintln(sum, g.Name, g.Tier, len(g.Functions))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), true
}

// keptProbe is a PlannedProbe on disk. Its function is one of the catalog's.
type keptProbe struct {
	Group, Function   int
	Symbol            string
	Address           uint64
	Name              string
	Entry             site.Entry
	Exits             []site.Exit
	EntryErr, ExitErr string
	Return            bool
	UsedFlag          uint64
	Size              uint64
	Code              codeSum
	Spec              bpf.CallProbeSpec
	Shapes            *tensor.Operator
	Unknown           uint32
}

// errNotOurs: the cache of plans can be written by others.
var errNotOurs = directory.ErrNotOurs

// load reads a plan that store wrote.
func (c Cache) load(key string, groups []spec.Group) ([]Probe, error) {
	dir, err := directory.OpenCache(c.directory)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := dir.Open(planName(key))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	contents, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return decodePlan(contents, groups)
}

// decodePlan checks the digest and makes the probes.
func decodePlan(contents []byte, groups []spec.Group) ([]Probe, error) {
	damaged := fmt.Errorf("a damaged plan")
	if len(contents) < sha256.Size || sha256.Sum256(contents[sha256.Size:]) != [sha256.Size]byte(contents) {
		return nil, damaged
	}
	var kept []keptProbe
	if err := gob.NewDecoder(bytes.NewReader(contents[sha256.Size:])).Decode(&kept); err != nil {
		return nil, fmt.Errorf("%w: %w", damaged, err)
	}
	probes := make([]Probe, len(kept))
	for i := range kept {
		k := &kept[i]
		if k.Group < 0 || k.Group >= len(groups) || k.Function < 0 || k.Function >= len(groups[k.Group].Functions) {
			return nil, damaged
		}
		group := &groups[k.Group]
		f := &group.Functions[k.Function]
		probes[i] = Probe{
			Group: group, Function: f, Symbol: k.Symbol, Address: k.Address,
			Call:  &event.Call{Layer: f.Layer, Category: f.Category, Runtime: f.Runtime, Name: k.Name},
			Entry: k.Entry, EntryErr: reasonError(k.EntryErr), Exits: k.Exits, ExitErr: reasonError(k.ExitErr),
			Return: k.Return, UsedFlag: k.UsedFlag, size: k.Size, code: k.Code, Spec: k.Spec, Shapes: k.Shapes, Unknown: k.Unknown,
		}
	}
	return probes, nil
}

// store writes a plan under a hidden name, then gives it its own.
func (c Cache) store(key string, plan *Plan, groups []spec.Group) error {
	if plan.Rest != nil {
		return errNoTurn
	}
	contents, err := encodePlan(plan, groups)
	if err != nil {
		return err
	}
	dir, err := directory.MakeCache(c.directory)
	if err != nil {
		return fmt.Errorf("making the cache of plans: %w", err)
	}
	defer dir.Close()
	if err := dir.Write(planName(key), ".plan-", contents); err != nil {
		return fmt.Errorf("keeping a plan: %w", err)
	}
	prunePlans(dir)
	return nil
}

// plansKept is how many plans stay: each build of the tracer makes its own.
const plansKept = 32

// prunePlans removes the oldest plans.
func prunePlans(dir *directory.Directory) {
	names, err := dir.Names()
	if err != nil {
		return
	}
	ages := map[string]time.Time{}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, planSuffix) })
	for _, name := range names {
		if info, err := dir.Info(name); err == nil {
			ages[name] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return ages[b].Compare(ages[a]) })
	for _, name := range names[min(plansKept, len(names)):] {
		_ = dir.Remove(name)
	}
}

func encodePlan(plan *Plan, groups []spec.Group) ([]byte, error) {
	places := map[*spec.Function][2]int{}
	for g := range groups {
		for f := range groups[g].Functions {
			places[&groups[g].Functions[f]] = [2]int{g, f}
		}
	}
	kept := make([]keptProbe, len(plan.Probes))
	for i := range plan.Probes {
		p := &plan.Probes[i]
		place, ok := places[p.Function]
		if !ok {
			return nil, fmt.Errorf("keeping a plan: %s is of no group", p.Symbol)
		}
		kept[i] = keptProbe{
			Group: place[0], Function: place[1], Symbol: p.Symbol, Address: p.Address, Name: p.Call.Name,
			Entry: p.Entry, Exits: p.Exits, EntryErr: reasonText(p.EntryErr), ExitErr: reasonText(p.ExitErr),
			Return: p.Return, UsedFlag: p.UsedFlag, Size: p.size, Code: p.code, Spec: p.Spec, Shapes: p.Shapes, Unknown: p.Unknown,
		}
	}
	var contents bytes.Buffer
	contents.Write(make([]byte, sha256.Size))
	if err := gob.NewEncoder(&contents).Encode(kept); err != nil {
		return nil, fmt.Errorf("keeping a plan: %w", err)
	}
	b := contents.Bytes()
	sum := sha256.Sum256(b[sha256.Size:])
	copy(b, sum[:])
	return b, nil
}

const planSuffix = ".plan"

func planName(key string) string { return key + planSuffix }

// A reason is kept as its text.
func reasonText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func reasonError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
