package python

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
)

// embedded builds a program with the system's Python in it, whose name does not say so.
func embedded(t *testing.T, shared bool, flags ...string) pythons.Python {
	t.Helper()
	system, err := pythons.Describe("/usr/bin/python3")
	if err != nil || system.Include == "" {
		t.Skipf("the system's Python has no headers (%v): scripts/system-packages.sh installs them", err)
	}
	program := filepath.Join(t.TempDir(), "trainer")
	arguments := append([]string{"-I", system.Include, "-o", program, "testdata/embedded.c"}, flags...)
	name := "python" + system.Version[:len("3.11")]
	if shared {
		arguments = append(arguments, "-l"+name)
	} else {
		archives, _ := filepath.Glob("/usr/lib/" + name + "/config-" + name[len("python"):] + "-*/lib" + name + "-pic.a")
		if len(archives) == 0 {
			t.Skip("the system's Python has no library to link with: scripts/system-packages.sh installs it")
		}
		arguments = append(arguments, archives[0], "-lm", "-ldl", "-lz", "-lexpat")
	}
	if out, err := exec.Command("gcc", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("linking a program with %s: %v\n%s", name, err, out)
	}
	return pythons.Python{Path: program}
}

// Interpreters that are not a program called python: linked into another program, with and
// without its symbols, or as a library; and one whose C library is Alpine's.
func TestEveryStackOfOtherPythonsIsTheOneThatTheJobSaw(t *testing.T) {
	for name, build := range map[string]func(t *testing.T) pythons.Python{
		"a library":            func(t *testing.T) pythons.Python { return embedded(t, true) },
		"static, exported":     func(t *testing.T) pythons.Python { return embedded(t, false, "-Wl,-E") },
		"static, not exported": func(t *testing.T) pythons.Python { return embedded(t, false) },
		"static, stripped":     func(t *testing.T) pythons.Python { return embedded(t, false, "-s") },
		"musl": func(t *testing.T) pythons.Python {
			return pythons.Python{Path: testcache.Path(t, "musl-python/python3.11", "no Python for musl is here: make musl-python builds it")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWalker(t)
			j := startJob(t, build(t), "../../testdata/jobs/plainstacks.py")
			i := openPID(t, j.cmd.Process.Pid)
			if !i.Verified {
				t.Error("the key was not verified against a thread")
			}
			w.follow(j.cmd.Process.Pid, i)
			w.probeGetppid(j.cmd.Process.Pid)
			j.say("run")
			want := noted(t, j.line())
			if len(want) != 2 {
				t.Errorf("%d threads noted stacks, want 2", len(want))
			}
			compareStacks(t, i, w.taken(), want)
		})
	}
}
