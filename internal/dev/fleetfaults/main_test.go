package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// An answer is right where the function is among the first three that accuse the victim;
// symptoms and what all workers have accuse no worker.
func TestOnlyTheRightFunctionOfTheRightWorkerCounts(t *testing.T) {
	f := &fault{name: "loader sleeps", function: "__getitem__"}
	finding := func(kind, function string, rank int, symptom bool) string {
		return fmt.Sprintf(`{"kind": %q, "function": %q, "workers": [{"rank": %d}], "cause": {"symptom": %v}}`, kind, function, rank, symptom)
	}
	right := finding("special", "Data.__getitem__ (x.py)", victim, false)
	other := finding("special", "aten::addmm", victim, false)
	for _, c := range []struct {
		name     string
		findings string
		place    int
	}{
		{"first", right, 1},
		{"third", other + "," + other + "," + right, 3},
		{"fourth", other + "," + other + "," + other + "," + right, 0},
		{"behind symptoms", finding("special", "c10d::Work::wait", 0, true) + "," + right, 1},
		{"of another worker", finding("special", "Data.__getitem__ (x.py)", 0, false), 0},
		{"of everybody", finding("common", "Data.__getitem__ (x.py)", victim, false), 0},
		{"nothing", "", 0},
	} {
		var a answer
		if err := json.Unmarshal([]byte(`{"verdict": "V", "findings": [`+c.findings+`]}`), &a); err != nil {
			t.Fatal(err)
		}
		o := outcome{fault: f}
		o.read(f, &a)
		if o.place != c.place {
			t.Errorf("%s: place %d, want %d", c.name, o.place, c.place)
		}
		if wrong := judge([]outcome{o}); (wrong == nil) != (c.place > 0) {
			t.Errorf("%s: %v", c.name, wrong)
		}
	}
	if err := judge([]outcome{{fault: f, err: fmt.Errorf("%w: no CPU", errNotHere)}}); err != nil {
		t.Error(err)
	}
	if err := judge([]outcome{{fault: f, err: errors.New("the job ended")}}); err == nil {
		t.Error("a job that ended is no miss")
	}
}

// A hang counts when who is missing is named and everybody's stack is there.
func TestAHangIsNamedWithEverybodysStacks(t *testing.T) {
	missing, mismatch := &fault{hang: "missing"}, &fault{hang: "mismatch"}
	for _, c := range []struct {
		name  string
		of    *fault
		text  string
		right bool
	}{
		{"missing", missing, `{"missing": [{"rank": 1, "threads": [{}]}], "waiting": [{"rank": 0, "threads": [{}]}]}`, true},
		{"without the stacks of one who waits", missing, `{"missing": [{"rank": 1, "threads": [{}]}], "waiting": [{"rank": 0}]}`, false},
		{"without those of the one who is missing", missing, `{"missing": [{"rank": 1}], "waiting": [{"rank": 0, "threads": [{}]}]}`, false},
		{"another rank", missing, `{"missing": [{"rank": 2, "threads": [{}]}], "waiting": [{"rank": 0, "threads": [{}]}]}`, false},
		{"mismatch", mismatch, `{"mismatch": true, "missing": [], "waiting": [{"rank": 0, "threads": [{}]}]}`, true},
		{"no mismatch", mismatch, `{"missing": [], "waiting": [{"rank": 0, "threads": [{}]}]}`, false},
		{"none waits", missing, `{"missing": [{"rank": 1, "threads": [{}]}], "waiting": []}`, false},
	} {
		var h hung
		if err := json.Unmarshal([]byte(`{"groups": [`+c.text+`]}`), &h); err != nil {
			t.Fatal(err)
		}
		if o := (outcome{fault: c.of}); o.readHang(c.of, &h) != c.right || o.right() != c.right {
			t.Errorf("%s: right: %v", c.name, o.right())
		}
	}
	for _, c := range []struct {
		of    *fault
		text  string
		right bool
	}{
		{mismatch, `{"different": true, "waiting": [{"rank": 0, "threads": [{}]}]}`, true},
		{mismatch, `{"different": true, "waiting": [{"rank": 0}]}`, false},
		{mismatch, `{"different": false, "waiting": [{"rank": 0, "threads": [{}]}]}`, false},
		{missing, `{"different": true, "waiting": [{"rank": 0, "threads": [{}]}]}`, false},
	} {
		var h hung
		if err := json.Unmarshal([]byte(`{"groups": [], "unseen": `+c.text+`}`), &h); err != nil {
			t.Fatal(err)
		}
		if o := (outcome{fault: c.of}); o.readHang(c.of, &h) != c.right {
			t.Errorf("%s: not %v", c.text, c.right)
		}
	}
	for rank := range 3 { // by their stacks alone
		var h hung
		text := fmt.Sprintf(`{"groups": [], "unseen": {"waiting": [{"rank": 0, "threads": [{}]}], "others": [{"rank": %d, "threads": [{}]}]}}`,
			rank)
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatal(err)
		}
		if o := (outcome{fault: missing}); o.readHang(missing, &h) != (rank == victim) {
			t.Errorf("rank %d is in no collective: right: %v", rank, o.right())
		}
	}
}
