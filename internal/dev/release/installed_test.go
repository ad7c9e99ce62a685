package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
)

// packed are packages of programs that are scripts.
func packed(t *testing.T) string {
	t.Helper()
	const missing = "no nfpm here: make nfpm builds it"
	nfpm, _ := filepath.Glob(filepath.Join(testcache.Path(t, "nfpm", missing), "v*", "nfpm"))
	if len(nfpm) == 0 {
		t.Skip(missing)
	}
	t.Chdir(filepath.Join("..", "..", ".."))
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := release{program: program, agent: program, arch: runtime.GOARCH, version: "v1.2.3", nfpm: nfpm[len(nfpm)-1], to: dir}
	if err := r.packages(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shellRoot is a root directory with a shell in it, which packages' scripts are run by.
func shellRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	listed, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Skip("no ldd here")
	}
	files := []string{"/bin/sh"}
	for field := range strings.FieldsSeq(string(listed)) {
		if strings.HasPrefix(field, "/") {
			files = append(files, field)
		}
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// below are the files in a root directory that packages brought.
func below(t *testing.T, root string) (names []string) {
	t.Helper()
	for _, part := range []string{"usr/bin", "usr/share/man", "usr/share/bash-completion", "lib/systemd", "etc/ebpfprof"} {
		_ = filepath.Walk(filepath.Join(root, part), func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				names = append(names, strings.TrimPrefix(path, root))
			}
			return nil // a directory that is not there has nothing
		})
	}
	return names
}

func TestPackagesAreInstalledAndRemoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, as packages' scripts do")
	}
	dir := packed(t)
	find := func(pattern string) (found []string) {
		found, _ = filepath.Glob(filepath.Join(dir, pattern))
		if len(found) != 2 {
			t.Fatalf("packages %s: %q", pattern, found)
		}
		return found
	}
	for _, c := range []struct {
		tool, packages  string
		install, remove func(root string) []string
	}{
		{"dpkg", "*.deb",
			func(root string) []string { return []string{"--root=" + root, "--force-depends", "--install"} },
			func(root string) []string { return []string{"--root=" + root, "--purge", "ebpfprof", "ebpfprof-agent"} }},
		{"rpm", "*.rpm",
			func(root string) []string { return []string{"--root", root, "--nodeps", "--install"} },
			func(root string) []string { return []string{"--root", root, "--erase", "ebpfprof", "ebpfprof-agent"} }},
	} {
		t.Run(c.tool, func(t *testing.T) {
			if _, err := exec.LookPath(c.tool); err != nil {
				t.Skipf("no %s here", c.tool)
			}
			root := shellRoot(t)
			if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg"), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.tool == "dpkg" {
				for _, name := range []string{"status", "available"} {
					if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg", name), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			run := func(arguments []string) {
				t.Helper()
				command := exec.CommandContext(t.Context(), c.tool, arguments...)
				command.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("%s %q: %v\n%s", c.tool, arguments, err, out)
				}
			}
			run(append(c.install(root), find(c.packages)...))
			installed := below(t, root)
			for _, want := range []string{"/usr/bin/ebpfprof", "/usr/bin/ebpfprof-agent", "/lib/systemd/system/ebpfprof-agent.service",
				"/lib/systemd/system/ebpfprof-registrar.timer", "/etc/ebpfprof/agent.yaml", "/usr/share/man/man1/ebpfprof.1",
				"/usr/share/man/man8/ebpfprof-agent.8", "/usr/share/bash-completion/completions/ebpfprof"} {
				if !slices.ContainsFunc(installed, func(name string) bool { return strings.TrimSuffix(name, ".gz") == want }) {
					t.Errorf("%s is not installed: %q", want, installed)
				}
			}
			run(c.remove(root))
			if left := below(t, root); len(left) > 0 {
				t.Errorf("after the removal there are %q", left)
			}
		})
	}
}
