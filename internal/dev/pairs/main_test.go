package main

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/diff"
	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
)

func TestAFalseAlarmIsAVerdictThatTheSameJobDiffers(t *testing.T) {
	counts := map[verdict.Verdict]int{verdict.Neutral: 15, verdict.Inconclusive: 2, verdict.Improvement: 2, verdict.Regression: 1}
	if n := falseAlarms(counts); n != 3 {
		t.Errorf("%d false alarms, want 3", n)
	}
}

func TestOnlyARegressionThatNamesTheOperatorPasses(t *testing.T) {
	grew := func(kind, key string) diff.Row {
		return diff.Row{Kind: kind, Key: key, Before: 1, After: 2, Significant: true}
	}
	shrank := diff.Row{Kind: "operator", Key: "aten::mm", Before: 3, After: 1, Significant: true}
	for _, c := range []struct {
		name    string
		verdict verdict.Verdict
		rows    []diff.Row
		passes  bool
	}{
		{"named", verdict.Regression, []diff.Row{grew("operator", operator)}, true},
		{"named behind a phase and a shorter one", verdict.Regression, []diff.Row{grew("phase", "forward"), shrank,
			grew("operator", operator)}, true},
		{"inconclusive", verdict.Inconclusive, []diff.Row{grew("operator", operator)}, false},
		{"another is named", verdict.Regression, []diff.Row{grew("operator", "aten::add"), grew("operator", operator)}, false},
		{"none is named", verdict.Regression, []diff.Row{shrank}, false},
	} {
		if err := judge(&diff.Result{Verdict: c.verdict, Rows: c.rows}); (err == nil) != c.passes {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
