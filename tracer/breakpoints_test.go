package tracer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
)

func TestPlanIsNotMisledByTheProbesOfAnotherTracer(t *testing.T) {
	k := testKernel(t)
	path := filepath.Join(buildNative(t), "libcallee-both.so")
	open := func() (*elf.File, *plan.Plan) {
		e, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e, plan.Library(e, path, nativeGroup("libcallee-both", spec.ExitSites, callees))
	}
	e, before := open()
	all := make([]int, len(before.Probes))
	for i := range all {
		all[i] = i
	}
	set, err := k.Attach(path, 0, 0, probes.SitesOf(before, 0, all))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()

	onDisk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range before.Probes {
		p := &before.Probes[i]
		offset, _ := e.FileOffset(p.Address)
		if code := e.CodeAt(p.Address, 32); !bytes.Equal(code, onDisk[offset:offset+32]) {
			t.Errorf("%s reads as % x, the file has % x", p.Symbol, code, onDisk[offset:offset+32])
		}
	}
	_, during := open()
	for i := range before.Probes {
		if b, d := &before.Probes[i], &during.Probes[i]; b.Entry != d.Entry || len(b.Exits) != len(d.Exits) {
			t.Errorf("%s: planned %+v, then %+v with probes in place", b.Symbol, b.Entry, d.Entry)
		}
	}
}
