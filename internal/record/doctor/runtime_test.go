package doctor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// TestDoctorNamesWhatARuntimeLacks plans a real library, whatever it is, as one
// of two catalogs: with all its functions, and with one that no version has.
func TestDoctorNamesWhatARuntimeLacks(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/*-linux-gnu/libOpenCL.so.1")
	if len(found) == 0 {
		t.Skip("no OpenCL here")
	}
	path := found[0]
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	planned := plan.Library(e, path, catalog.Groups())
	checks := runtimeChecks([]*plan.Plan{planned}, nil)
	if len(checks) != 1 || checks[0].State != stateOK || !strings.Contains(checks[0].Why, "libOpenCL.so.1 has ") ||
		strings.Contains(checks[0].Why, "not in this version") {
		t.Fatalf("%+v", checks)
	}
	// As a library that lacks a function, and whose functions are CUDA's.
	lacking := *planned
	lacking.Probes = planned.Probes[1:]
	gone := planned.Probes[0].Function.Symbol
	if k, _ := runtimeCheck(&lacking, "opencl", nil); !strings.Contains(k.Why, "not in this version: "+gone) {
		t.Errorf("%+v, want it to name %s", k, gone)
	}
	lost := []counter.Availability{{Source: "nvidia", Err: errors.New("no driver")}}
	for i := range lacking.Probes {
		f := *lacking.Probes[i].Function
		f.Runtime = "cuda"
		lacking.Probes[i].Function = &f
	}
	if k, _ := runtimeCheck(&lacking, "cuda", lost); k.State != stateDegraded || !strings.Contains(k.Why,
		"no counters of its devices: no driver") {
		t.Errorf("%+v, want the reason for no counters", k)
	}
}
