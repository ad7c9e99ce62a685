package main

import (
	"strings"
	"testing"
)

func pointer[T any](v T) *T { return &v }

// TestOnlyTheRightRuleAtTheRightLineThatKeepsItsWordPasses, and a healthy loop without
// anything severe.
func TestOnlyTheRightRuleAtTheRightLineThatKeepsItsWordPasses(t *testing.T) {
	right := finding{Rule: "layout", Severity: "high", HeadroomMS: pointer(10.0), File: pointer("/a/planted.py"), Line: pointer(7)}
	of := func(change func(*finding), with float64) outcome {
		f := right
		if change != nil {
			change(&f)
		}
		return outcome{problem: "layout", line: pointer(7), found: []finding{f}, with: with, without: 20}
	}
	for _, c := range []struct {
		name  string
		o     outcome
		wrong string
	}{
		{"right", of(nil, 29), ""},
		{"promises too much", of(nil, 27), "70 %"},
		{"another rule", of(func(f *finding) { f.Rule = "fusion" }, 30), "not layout"},
		{"another line", of(func(f *finding) { f.Line = pointer(8) }, 30), "planted.py:8 instead of line 7"},
		{"no line", of(func(f *finding) { f.File, f.Line = nil, nil }, 30), "no line"},
		{"no headroom", of(func(f *finding) { f.HeadroomMS = nil }, 30), "without headroom"},
		{"nothing", outcome{problem: "layout"}, "nothing was found"},
		{"healthy", outcome{problem: "none", found: []finding{{Rule: "fusion", Severity: "medium"}}}, ""},
		{"healthy and accused", outcome{problem: "none", found: []finding{{Rule: "hotspot", Severity: "info"}, right}}, "healthy"},
	} {
		err := c.o.judge()
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
