package tracer

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Kernels before 5.17 have neither bpf_loop, nor bpf_find_vma, nor a way to switch preemption off.
// What they would load, this kernel's verifier must take as well.
func TestWalksLoadWithoutBPFLoop(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	const most = 100_000
	processed := regexp.MustCompile(`processed (\d+) insns`)
	for name, load := range map[string]func() (*ebpf.CollectionSpec, error){
		"call": bpf.LoadCall, "sample": bpf.LoadSample, "native": bpf.LoadNativeWalk, "python": bpf.LoadPythonWalk,
	} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		bpf.StripGuard(spec)
		for _, without := range []string{"without_bpf_loop", "without_find_vma"} {
			if err := spec.Variables[without].Set(uint32(1)); err != nil {
				t.Fatal(err)
			}
		}
		for name, p := range spec.Programs {
			if newer := hideNewHelpers(p, &features.Set{}); len(newer) > 0 {
				t.Errorf("program %s calls %v, which Linux 5.15 has not", name, newer)
			}
		}
		c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Errorf("%s: %+v", name, refused)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for program, p := range c.Programs {
			sum := 0
			for _, found := range processed.FindAllStringSubmatch(p.VerifierLog, -1) {
				n, _ := strconv.Atoi(found[1])
				sum += n
			}
			t.Logf("%s: %d instructions", program, sum)
			if sum == 0 || sum > most {
				t.Errorf("%s: the verifier looks at %d instructions without bpf_loop", program, sum)
			}
		}
		c.Close()
	}
}
