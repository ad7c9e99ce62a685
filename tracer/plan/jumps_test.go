package plan

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

func TestAJumpIsAllThatAFunctionIs(t *testing.T) {
	for name, c := range map[string]struct {
		arch   site.Arch
		code   []byte
		target uint64
		ok     bool
	}{
		"jmp":          {site.AMD64, []byte{0xe9, 0xfb, 0x0f, 0, 0}, 0x2000, true},
		"backwards":    {site.AMD64, []byte{0xe9, 0xfb, 0xff, 0xff, 0xff, 0x90}, 0x1000, true},
		"endbr64; jmp": {site.AMD64, []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0xf7, 0x0f, 0, 0}, 0x2000, true},
		"push; jmp":    {site.AMD64, []byte{0x55, 0xe9, 0xfb, 0x0f, 0, 0}, 0, false},
		"call":         {site.AMD64, []byte{0xe8, 0xfb, 0x0f, 0, 0, 0xc3}, 0, false},
		"cut short":    {site.AMD64, []byte{0xe9, 0xfb}, 0, false},
		"b":            {site.ARM64, []byte{0x00, 0x04, 0x00, 0x14}, 0x2000, true},
		"bti; b":       {site.ARM64, []byte{0x5f, 0x24, 0x03, 0xd5, 0xff, 0xff, 0xff, 0x17}, 0x1000, true},
		"bl":           {site.ARM64, []byte{0x00, 0x04, 0x00, 0x94}, 0, false},
		"stp; b":       {site.ARM64, []byte{0xfd, 0x7b, 0xbf, 0xa9, 0x00, 0x04, 0x00, 0x14}, 0, false},
	} {
		target, ok := onlyJump(site.Function{Arch: c.arch, Address: 0x1000, Code: c.code})
		if ok != c.ok || ok && target != c.target {
			t.Errorf("%s: %#x, %t", name, target, ok)
		}
	}
}

// free_cpu of a real libc10 is a jump to free; what is one to something else, or more than
// that, has no return probe and is an instant.
func TestOnlyAJumpToFreeHasAReturnProbe(t *testing.T) {
	libraries, err := filepath.Glob("/usr/lib/*/libc10.so.1.13*")
	if err != nil || len(libraries) == 0 {
		t.Skip("no libc10 here: apt install libtorch1.13")
	}
	e, err := elf.Open(libraries[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, c := range []struct {
		symbol, jumps string
		want          error
	}{
		{"_ZN3c108free_cpuEPv", "free", nil},
		{"_ZN3c108free_cpuEPv", "malloc", errNoJump},
		{"_ZN3c109alloc_cpuEm", "free", errNoJump},
	} {
		p := Library(e, "libc10.so", []spec.Group{{Name: "memory", Tier: spec.Detail, Functions: []spec.Function{{
			Library: "libc10.so", Symbol: c.symbol, Exact: true, Layer: "runtime", Category: "free", Label: c.symbol,
			Action: spec.Timed, End: spec.Return, JumpsTo: c.jumps, Values: []spec.Value{spec.Reg(spec.FieldAddress, 0)},
		}}}})
		if len(p.Probes) != 1 {
			t.Fatalf("%s: %d probes", c.symbol, len(p.Probes))
		}
		probe := &p.Probes[0]
		if probe.EntryErr != nil || probe.Return != (c.want == nil) || !errors.Is(probe.ExitErr, c.want) {
			t.Errorf("%s, jumping to %s: return probe %t, %v, %v", c.symbol, c.jumps, probe.Return, probe.EntryErr, probe.ExitErr)
		}
		timed := probe.Spec.Action
		if p.DropReturns(); (probe.Spec.Action != timed) != (c.want == nil) || probe.Return {
			t.Errorf("%s: without return probes action %d is %d", c.symbol, timed, probe.Spec.Action)
		}
	}
}
