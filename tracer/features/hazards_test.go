package features

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKillSwitchRefusesAndSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disable")
	if err := killSwitch(path); err != nil {
		t.Fatalf("without the file: %v", err)
	}
	for content, want := range map[string]string{"": path + " exists", "incident 42\nmore": "exists (incident 42)"} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := killSwitch(path); !errors.Is(err, ErrNotPermitted) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if err := killSwitch(t.TempDir()); !errors.Is(err, ErrNotPermitted) {
		t.Errorf("a switch that cannot be read does not count: %v", err)
	}
}

func TestKillSwitchVariable(t *testing.T) {
	for value, refused := range map[string]bool{"": false, "0": false, "1": true, "yes": true} {
		t.Setenv(DisableVariable, value)
		if err := CheckKillSwitch(); errors.Is(err, ErrNotPermitted) != refused {
			t.Errorf("%s=%q: %v", DisableVariable, value, err)
		}
	}
}

func TestHazardsFollowVersionArchitectureAndGuard(t *testing.T) {
	for _, c := range []struct {
		release, arch string
		guard         bool
		want          string
	}{
		{"5.15.0-91-generic", "amd64", false, ""},
		{"6.10.14", "amd64", true, ""},
		{"6.11.0-8-generic", "amd64", true, "uretprobe under seccomp"},
		{"6.11.0-8-generic", "arm64", true, ""},
		{"6.13.1", "amd64", false, "private stacks, uretprobe under seccomp"},
		{"6.14.0", "amd64", true, ""},
		{"6.18.44", "arm64", false, "private stacks"},
		{"7.0.0", "amd64", true, ""},
		{"10.0", "amd64", false, "private stacks"},
	} {
		var names []string
		for _, h := range HazardsOf(c.release, c.arch, &Set{PreemptGuard: c.guard}) {
			names = append(names, h.Name)
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("%s %s, guard %v: %q, want %q", c.release, c.arch, c.guard, got, c.want)
		}
	}
}

func TestEveryHazardHasEvidence(t *testing.T) {
	for _, h := range Hazards {
		if h.Name == "" || h.From == "" || h.Harm == "" || h.Source == "" {
			t.Errorf("incomplete: %+v", h.Name)
		}
	}
}

func TestHazardOfOneProcessSparesOthers(t *testing.T) {
	h := Hazard{hits: func(pid int) bool { return pid == 7 }}
	if err := h.refuse([]int{1, 7}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "pid 7") {
		t.Error(err)
	}
	if err := h.refuse([]int{1}); err != nil {
		t.Error(err)
	}
	if err := (&Hazard{}).refuse(nil); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}
