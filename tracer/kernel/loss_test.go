package kernel

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestLossNamesAreThoseOfTheHeader(t *testing.T) {
	header, err := os.ReadFile("../../bpf/wire.h")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`\tLOSS_([A-Z_]+),`).FindAllStringSubmatch(string(header), -1) {
		if m[1] != "MAX" {
			names = append(names, strings.ToLower(m[1]))
		}
	}
	if len(names) != len(Losses) || len(names) == 0 {
		t.Fatalf("%d reasons in the header, %d in Go", len(names), len(Losses))
	}
	for i, name := range names {
		if Losses[i].Name != name || Losses[i].Loss != Loss(i) || Losses[i].Loss.Name() != name {
			t.Errorf("reason %d is %q in the header, %q in Go", i, name, Losses[i].Name)
		}
	}
}
