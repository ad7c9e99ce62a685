//go:build libbpf

package tracer

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/libbpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// The loader and the relocations are cilium/ebpf's, and attaching is our own. Here upstream's
// libbpf does all three, and what is counted of a job has to be equal.

// byLibbpf has everything loaded and attached by libbpf until the test ends.
func byLibbpf(t *testing.T) *libbpf.Loader {
	t.Helper()
	can := features.Probe()
	if !can.PreemptGuard || !can.GuardedCalls {
		t.Skip("libbpf: the tracer changes its programs for this kernel, and libbpf loads them as they are compiled")
	}
	loader := libbpf.New()
	ours := bpf.NewCollection
	bpf.NewCollection, uprobe.Attacher = loader.Load, loader.Attach
	t.Cleanup(loader.Close)
	t.Cleanup(func() { bpf.NewCollection, uprobe.Attacher = ours, nil })
	return loader
}

// counted is what was counted of a job.
type counted map[string]int

// look runs a job under the tracer.
func look(t *testing.T, options Options, argv ...string) counted {
	t.Helper()
	truth, sink, session := traceCommand(t, options, nil, argv...)
	all := counted{}
	for _, s := range sink.spans {
		all[fmt.Sprintf("%s: spans that ended %s", s.Call.Name, s.Status)]++
	}
	for _, p := range session.probes.All() {
		c, err := session.kernel.Count(p.Index)
		if err != nil {
			t.Fatal(err)
		}
		all[p.Planned.Call.Name+": entries"] += int(c.Entries)
		all[p.Planned.Call.Name+": exits"] += int(c.Exits)
		all[p.Planned.Call.Name+": lost"] += int(c.Lost)
	}
	for name, calls := range truth.Calls {
		if name != "callee_loop_at_entry" && all[name+": entries"] != calls {
			t.Errorf("%s: %d entries, the job made %d calls", name, all[name+": entries"], calls)
		}
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n == 0 })
	return all
}

// compare reports each count that the two loaders do not agree on.
func compare(t *testing.T, ours, theirs counted) {
	t.Helper()
	both := maps.Clone(ours)
	maps.Copy(both, theirs)
	sum := 0
	for _, what := range slices.Sorted(maps.Keys(both)) {
		if ours[what] != theirs[what] {
			t.Errorf("%s: %d where cilium/ebpf loads, %d where libbpf does", what, ours[what], theirs[what])
		}
		sum += ours[what]
	}
	if sum == 0 {
		t.Error("nothing was counted")
	}
	t.Logf("%d counts are compared, their sum is %d", len(both), sum)
}

func TestUpstreamLibbpfCountsNativeCallsAsOurLoader(t *testing.T) {
	needKernel(t)
	thrower := map[string]string{
		"maybe": "_ZN7thrower5maybeEl", "nested": "_ZN7thrower6nestedEll",
		"shielded": "_ZN7thrower8shieldedEl", "Worker::work": "_ZN7thrower6Worker4workEl",
	}
	jobs := map[string][]spec.Group{
		"calls-both":  nativeGroup("libcallee-both", spec.Return, callees),
		"throws-both": nativeGroup("libthrower-both", spec.ExitSites, thrower),
	}
	for way, perf := range attachWays {
		for _, job := range slices.Sorted(maps.Keys(jobs)) {
			if perf && job == "throws-both" {
				continue // a program and its ends are attached the same way as another's
			}
			t.Run(way+"/"+job, func(t *testing.T) {
				options := Options{PerfEvents: perf, catalog: jobs[job]}
				argv := []string{filepath.Join(buildNative(t), job), "200", "wait"}
				ours := look(t, options, argv...)
				loader := byLibbpf(t)
				theirs := look(t, options, argv...)
				if loader.Programs() == 0 {
					t.Error("libbpf loaded nothing")
				}
				compare(t, ours, theirs)
			})
		}
	}
}

// steps is a job of a few operators, without threads of its own making.
const steps = `
import sys, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(8, 16)).square().mean().backward()
    optimizer.step()
step()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    step()
print("{}", flush=True)
`

// Samples are taken as well, at other instants each time: they show that the programs of
// stacks and waits, which libbpf loads too, take some.
func TestUpstreamLibbpfCountsOperatorsAsOurLoader(t *testing.T) {
	needKernel(t)
	python := "/usr/bin/python3" // Debian's PyTorch is planned sooner than PyPI's
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("libbpf: there is no PyTorch here: run `make deps`")
	}
	// All is planned anew and before the job goes on, however long that takes.
	options := Options{Frequency: 99, OffCPU: time.Millisecond, MaxFrames: 64, catalog: catalog.Groups(), times: times{planning: time.Hour}}
	ours := look(t, options, python, "-c", steps)
	loader := byLibbpf(t)
	theirs := look(t, options, python, "-c", steps)
	if loader.Programs() == 0 {
		t.Error("libbpf loaded nothing")
	}
	compare(t, ours, theirs)
}

// What the kernel has of each object with either loader: tables, and functions with every
// relocated field in them.
func TestUpstreamLibbpfLoadsEveryObjectByItself(t *testing.T) {
	needKernel(t)
	byLibbpf(t)
	for _, name := range libbpf.Objects() {
		t.Run(name, func(t *testing.T) {
			tables, functions, err := libbpf.Alone(name)
			if err != nil {
				t.Fatal(err)
			}
			for kind, pairs := range map[string]map[string]libbpf.Pair{"table": tables, "program": functions} {
				for what, of := range pairs {
					if of.Ours != of.Theirs {
						t.Errorf("%s %s: %q where cilium/ebpf loads, %q where libbpf does", kind, what, of.Ours, of.Theirs)
					}
				}
				if len(pairs) == 0 {
					t.Errorf("no %s was loaded", kind)
				}
			}
			t.Logf("%d functions and %d tables are compared", len(functions), len(tables))
		})
	}
}
