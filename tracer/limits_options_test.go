package tracer

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestLimitsAreReadByNameAndWithinTheirBounds(t *testing.T) {
	set, err := ParseLimits([]string{"stacks=65536", "files=12"})
	o := Options{Limits: set}
	if err != nil || o.limit("stacks") != 65536 || o.limit("files") != 12 || o.limit("processes") != MaxProcesses {
		t.Errorf("%v, %v", set, err)
	}
	for _, wrong := range []string{"stacks", "stacks=", "stacks=0", "stacks=-1", "stacks=many", "unwind-mib=257"} {
		if _, err := ParseLimits([]string{wrong}); err == nil || errors.Is(err, ErrUnknownLimit) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := ParseLimits([]string{"nothing=1"}); !errors.Is(err, ErrUnknownLimit) {
		t.Errorf("an unknown one: %v", err)
	}
}

func TestEveryLimitIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range Limits {
		if !strings.Contains(string(page), "`"+l.Name+"`") {
			t.Errorf("docs/limits.md does not have %s", l.Name)
		}
	}
}
