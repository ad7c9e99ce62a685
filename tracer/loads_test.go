package tracer

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// mostVerified is how many instructions the verifier may look at in one program,
// on every kernel: a tenth of its limit.
const mostVerified = 100_000

var verified = regexp.MustCompile(`processed (\d+) insns`)

// lastWords are the end of the verifier's log.
func lastWords(spec *ebpf.CollectionSpec, k *kernel) string {
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: k.unwind.Replacements(spec),
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

// Each program is loaded by itself, at its real sizes and as this kernel's
// features ask for it, so that one refusal does not hide the others. The matrix of
// kernels runs it on each, and with each optional feature switched off, and reads
// what it logs.
func TestEachProgramLoadsWithinTheCeiling(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	features := ProbeFeatures()
	for _, f := range features.List {
		t.Logf("feature %s since %s: %v", f.Key, f.Since, f.Err == nil)
	}
	if err := features.Check(); err != nil {
		t.Skip(err)
	}
	sizes := kernelSizes{ring: 64 << 20, frames: 128, verify: 256}
	k, err := newKernel(sizes, features)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, of := range []struct {
		name string
		spec func() (*ebpf.CollectionSpec, error)
	}{
		{"call", k.callSpec}, {"life", k.lifeSpec},
		{"sample", func() (*ebpf.CollectionSpec, error) { return samplerSpec(k, 99, time.Millisecond) }},
	} {
		all, err := of.spec()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(all.Programs)) {
			one, err := of.spec()
			if err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(one.Programs, func(other string, _ *ebpf.ProgramSpec) bool { return other != name })
			loaded, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{
				MapReplacements: k.unwind.Replacements(one), Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
			if err != nil {
				t.Errorf("%s: refused: %v\n%s", name, err, lastWords(one, k))
				continue
			}
			found := verified.FindStringSubmatch(loaded.Programs[name].VerifierLog)
			loaded.Close()
			if found == nil {
				t.Errorf("%s: the verifier says no count", name)
				continue
			}
			n, _ := strconv.Atoi(found[1])
			t.Logf("program %s: %d instructions", name, n)
			if n > mostVerified {
				t.Errorf("%s: the verifier looks at %d instructions, more than %d", name, n, mostVerified)
			}
		}
	}
}
