package site

import "testing"

// shares counts plans by how good they are.
type shares struct {
	functions, entryCheap, exitCheap, exitSingle int
	failed                                       []string
}

func operatorShares(l *library, kind string) shares {
	var s shares
	for _, n := range l.match("_ZN2at4_ops", kind) {
		f := l.function(n)
		s.functions++
		if e, err := PlanEntry(f, Need{Args: 7, Return: true}); err == nil && e.Cost == CostEmulated {
			s.entryCheap++
		}
		exits, err := PlanExits(f, false)
		if err != nil {
			s.failed = append(s.failed, n+": "+err.Error())
			continue
		}
		s.exitCheap++
		if len(exits) == 1 {
			s.exitSingle++
		}
	}
	return s
}

// TestOperatorCallsHaveExitSites: every operator of PyTorch has a cheap entry
// site, and all but at most one have cheap exit sites: in Debian's build, which
// protects its stack, and in the wheel from PyPI, which does not.
func TestOperatorCallsHaveExitSites(t *testing.T) {
	for _, c := range []struct {
		name, library     string
		functions, single int // at least
	}{
		{"Debian 1.13", debianTorch, 2952, 2951},
		{"wheel", wheelTorch, 2000, 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openLibrary(t, c.library)
			s := operatorShares(l, "4callE")
			t.Logf("%d operators: %d cheap entries, %d cheap exits, %d by a single site", s.functions, s.entryCheap, s.exitCheap, s.exitSingle)
			if s.functions < c.functions || s.entryCheap != s.functions {
				t.Errorf("%d of %d operators have a cheap entry site", s.entryCheap, s.functions)
			}
			if s.exitCheap < s.functions-1 || s.exitSingle < c.single {
				t.Errorf("%d of %d operators have cheap exit sites, %d a single one; failed: %q", s.exitCheap, s.functions, s.exitSingle, s.failed)
			}
		})
	}
}

// TestEngineFunctionsHaveExitSites: the ends of backward passes and of
// collectives are seen without return probes.
func TestEngineFunctionsHaveExitSites(t *testing.T) {
	for _, lib := range []string{debianTorch, wheelTorch} {
		l := openLibrary(t, lib)
		for _, want := range []string{
			"_ZN5torch8autograd6Engine17evaluate_function",
			"_ZN5torch8autograd6Engine7execute",
			"_ZN5torch8autograd6Engine23execute_with_graph_task",
			"_ZN4c10d16ProcessGroupGloo9allreduceE",
			"_ZN4c10d16ProcessGroupGloo9broadcastE",
			"_ZN4c10d16ProcessGroupGloo7barrierE",
		} {
			names := l.match(want)
			if len(names) == 0 {
				t.Errorf("%s: no function %s", lib, want)
			}
			for _, n := range names {
				f := l.function(n)
				if e, err := PlanEntry(f, Need{Args: 0x3f, Stack: true, Return: true}); err != nil || e.Cost != CostEmulated {
					t.Errorf("%s: entry %+v, %v", n, e, err)
				}
				exits, err := PlanExits(f, false)
				if err != nil || !exits[0].DisplacementKnown {
					t.Errorf("%s: exits %+v, %v", n, exits, err)
				}
			}
		}
	}
}

func TestNamesThatDoNotThrow(t *testing.T) {
	for name, want := range map[string]bool{
		"free": true, "_ZN2at6TensorD1Ev": true, "_ZN3c1017intrusive_ptrINS_10TensorImplEE15reset_not_null_EPS1_": true,
		"_ZN3c106SymInt8release_Ev.isra.0": true, "_ZNSt16_Sp_counted_baseILN9__gnu_cxx12_Lock_policyE2EE10_M_releaseEv": true,
		"_ZN2at6TensorC1Ev": false, "_ZN2at4_ops3add4callEv": false, "qsort": false, "": false,
	} {
		if NoThrowName(name) != want {
			t.Errorf("NoThrowName(%q) is not %v", name, want)
		}
	}
}

func TestLeafNamesNeitherThrowNorCallBack(t *testing.T) {
	for name, want := range map[string]bool{
		"__tls_get_addr@GLIBC_2.3": true, "free": true, "__stack_chk_fail": true,
		"__cxa_throw": false, "qsort": false, "": false,
	} {
		if LeafName(name) != want {
			t.Errorf("LeafName(%q) is not %v", name, want)
		}
	}
}
