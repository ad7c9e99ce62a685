package tracer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/sampler"
)

// mostVerified is how many instructions the verifier may look at in one program,
// on every kernel: a tenth of its limit.
const mostVerified = 100_000

var verified = regexp.MustCompile(`processed (\d+) insns`)

// ways are this kernel's features, and those of a kernel that has all but one. No
// kernel has the guard and not bpf_loop, which is older by five years; one of private
// stacks that has no guard is refused before anything is loaded.
//
// What 6.13 and 6.14 load, which lack the calls under the guard, is tried up to 6.18:
// 6.19 and 7.0 compare more of a state inside bpf_loop, and need five times as long.
func ways(all *features.Set) map[string]*features.Set {
	var u unix.Utsname
	var major, minor int
	_ = unix.Uname(&u)
	_, _ = fmt.Sscanf(string(u.Release[:]), "%d.%d", &major, &minor)
	prunes := major == 6 && minor < 19
	found := map[string]*features.Set{"all": all}
	for key, there := range map[string]func(*features.Set) *bool{
		"find_vma":      func(f *features.Set) *bool { return &f.FindVMA },
		"bpf_loop":      func(f *features.Set) *bool { return &f.BPFLoop },
		"uprobe_multi":  func(f *features.Set) *bool { return &f.UprobeMulti },
		"preempt_guard": func(f *features.Set) *bool { return &f.PreemptGuard },
		"guarded_calls": func(f *features.Set) *bool { return &f.GuardedCalls },
		"dynamic_hash":  func(f *features.Set) *bool { return &f.DynamicHash },
	} {
		without := *all
		if !*there(&without) || key == "preempt_guard" && features.PrivateStacks() || key == "bpf_loop" && all.PreemptGuard ||
			key == "guarded_calls" && !prunes {
			continue
		}
		*there(&without) = false
		if key == "bpf_loop" { // both came with 5.17
			without.FindVMA = false
		}
		found[key] = &without
	}
	return found
}

// Each program is loaded by itself, at its real sizes, so that one refusal does not
// hide the others: with what this kernel has, and without each feature that it need
// not have. The kernel matrix runs this, and reads what it logs.
func TestEachProgramLoadsWithinTheCeiling(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	features := features.Probe()
	for _, f := range features.List {
		t.Logf("feature %s %v", f.Key, f.Err == nil)
	}
	if err := features.Check(); err != nil {
		t.Skip(err)
	}
	all := ways(features)
	seen := map[[sha256.Size]byte]bool{}
	for _, way := range slices.Sorted(maps.Keys(all)) { // "all" is the first
		k, err := kernel.New(kernel.Sizes{Ring: 64 << 20, Frames: 128, Verify: 256}, all[way])
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		for _, read := range []func() (*ebpf.CollectionSpec, error){
			k.CallSpec, k.LifeSpec, func() (*ebpf.CollectionSpec, error) {
				return sampler.Spec(k, sampler.Options{Frequency: 99, OffCPU: time.Millisecond, IO: true})
			},
		} {
			spec, err := read()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
				text := programText(spec, name)
				if seen[text] {
					continue // the feature makes no difference to it
				}
				seen[text] = true
				one, err := read()
				if err != nil {
					t.Fatal(err)
				}
				maps.DeleteFunc(one.Programs, func(other string, _ *ebpf.ProgramSpec) bool { return other != name })
				if newer := hideNewHelpers(one.Programs[name], all[way]); len(newer) > 0 {
					t.Errorf("program %s calls %v, which Linux 5.15 has not", name, newer)
				}
				n, err := loadOne(one, name, k)
				if err != nil {
					t.Errorf("program %s %s refused: %v\n%s", name, way, err, lastWords(one, k))
					continue
				}
				t.Logf("program %s %s %d", name, way, n)
				if n > mostVerified {
					t.Errorf("%s: the verifier looks at %d instructions, more than %d", name, n, mostVerified)
				}
			}
		}
	}
}

// lastOf515 is the newest helper of Linux 5.15, the oldest that is supported, and
// noHelper one that no kernel has.
const (
	lastOf515 = asm.FnTaskPtRegs
	noHelper  = 30_000
)

// hideNewHelpers makes of a program's calls of helpers that came after 5.15 what they are
// to that kernel, where the way of loading it says that they are not there: the verifier
// then refuses it if it comes to one. It returns those that are called all the same.
func hideNewHelpers(p *ebpf.ProgramSpec, can *features.Set) (called []asm.BuiltinFunc) {
	for i := range p.Instructions {
		instruction := &p.Instructions[i]
		if !instruction.IsBuiltinCall() || asm.BuiltinFunc(instruction.Constant) <= lastOf515 {
			continue
		}
		switch helper := asm.BuiltinFunc(instruction.Constant); {
		case helper != asm.FnLoop && helper != asm.FnFindVma:
			called = append(called, helper)
		case helper == asm.FnLoop && !can.BPFLoop, helper == asm.FnFindVma && !can.FindVMA:
			instruction.Constant = noHelper
		}
	}
	return called
}

// programText tells programs apart that the verifier may see differently. By what
// they will be attached it does not.
func programText(spec *ebpf.CollectionSpec, name string) [sha256.Size]byte {
	p := spec.Programs[name]
	without := ""
	for _, variable := range []string{"without_bpf_loop", "without_find_vma"} {
		if v, ok := spec.Variables[variable]; ok {
			var set uint32
			if v.Get(&set) == nil && set != 0 {
				without += variable
			}
		}
	}
	linkage := ""
	for i := range p.Instructions {
		if f := btf.FuncMetadata(&p.Instructions[i]); f != nil {
			linkage += f.Linkage.String()
		}
	}
	tables := "" // a map that replaces another has to be like it
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		tables += fmt.Sprint(name, spec.Maps[name].Flags, spec.Maps[name].MaxEntries)
	}
	return sha256.Sum256(fmt.Append(nil, name, without, linkage, tables, p.Instructions))
}

func loadOne(spec *ebpf.CollectionSpec, name string, k *kernel.Programs) (instructions int, err error) {
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		MapReplacements: k.Unwind.Replacements(spec), Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		return 0, err
	}
	defer loaded.Close()
	found := verified.FindStringSubmatch(loaded.Programs[name].VerifierLog)
	if found == nil {
		return 0, errors.New("the verifier says no count")
	}
	return strconv.Atoi(found[1])
}

// lastWords are the end of the verifier's log.
func lastWords(spec *ebpf.CollectionSpec, k *kernel.Programs) string {
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: k.Unwind.Replacements(spec),
		Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelInstruction | ebpf.LogLevelBranch, LogSizeStart: 64 << 20}})
	if err == nil {
		c.Close()
		return "and then not"
	}
	var refused *ebpf.VerifierError
	if !errors.As(err, &refused) {
		return err.Error()
	}
	return strings.Join(refused.Log[max(0, len(refused.Log)-30):], "\n")
}

// BenchmarkLoad is what the programs of a recording with samples take to load, but those
// that load beside it: most is the verifier's, and the larger part of the time until a
// job is recorded.
func BenchmarkLoad(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("kernel: needs root")
	}
	features := features.Probe()
	for b.Loop() {
		options := Options{BufferBytes: 64 << 20, MaxFrames: 128, Frequency: 99, OffCPU: time.Millisecond}
		k, s, refused, err := options.load(features, func(*kernel.Programs) {})
		if err := errors.Join(err, refused); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := k.WaitLater(); err != nil {
			b.Fatal(err)
		}
		s.Close()
		k.Close()
		b.StartTimer()
	}
}
