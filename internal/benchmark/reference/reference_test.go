package reference

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
)

// figure is a number of the golden file, where infinities are text; nil is none.
func figure(t *testing.T, v any) *float64 {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return nil
	case float64:
		return &v
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		return &f
	}
	t.Fatalf("%v is no number", v)
	return nil
}

// TestBoundsAreThoseOfReFrame: testdata/bounds.json was written once by ReFrame's own functions (make.py beside it).
func TestBoundsAreThoseOfReFrame(t *testing.T) {
	text, err := os.ReadFile("testdata/bounds.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Rows [][]any `json:"rows"`
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Rows) < 1030 {
		t.Fatalf("only %d cases", len(golden.Rows))
	}
	seen := map[string]int{}
	for i, row := range golden.Rows {
		value, ref := figure(t, row[0]), figure(t, row[1])
		r := Reference{Value: *ref, Lower: figure(t, row[2]), Upper: figure(t, row[3])}
		want := row[6].(string)
		seen[want]++
		what := fmt.Sprintf("case %d, value %v, reference %v", i, *value, row[1:4])
		lower, upper, err := r.Bounds()
		if want == "invalid" {
			if err == nil {
				t.Errorf("%s: taken, and ReFrame refuses it", what)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if least, most := figure(t, row[4]), figure(t, row[5]); lower != *least || upper != *most {
			t.Errorf("%s: %v to %v, ReFrame has %v to %v", what, lower, upper, *least, *most)
		}
		if got, _ := r.Check(*value); string(got) != want {
			t.Errorf("%s: %s, ReFrame says %s", what, got, want)
		}
	}
	for _, result := range []string{"pass", "fail", "invalid"} {
		if seen[result] < 100 {
			t.Errorf("only %d cases are %s: the test would miss a mistake", seen[result], result)
		}
	}
}

func TestAnExpectedMissIsNoFailureAndAnExpectedOneThatHoldsIs(t *testing.T) {
	r := Reference{Value: 100, Lower: new(-0.1), Upper: new(0.1), Expected: "the file system is slow"}
	for _, c := range []struct {
		value float64
		want  Result
	}{{50, XFail}, {100, XPass}, {90, XPass}, {89.9, XFail}} {
		if got, err := r.Check(c.value); got != c.want || err != nil {
			t.Errorf("%v: %s, %v; want %s", c.value, got, err, c.want)
		}
	}
	for _, c := range []struct {
		of   []Result
		want Result
	}{
		{nil, Pass}, {[]Result{Pass, XFail}, XFail}, {[]Result{XFail, XPass, Pass}, XPass}, {[]Result{Fail, XPass, XFail}, Fail},
	} {
		if got := Worst(c.of); got != c.want {
			t.Errorf("%v: %s, want %s", c.of, got, c.want)
		}
	}
}

func TestAnIntervalOverABoundIsNotCertain(t *testing.T) {
	r := Reference{Value: 100, Lower: new(-0.1), Upper: new(0.1)}
	for _, c := range []struct {
		value, lo, hi float64
		want          bool
	}{{100, 95, 105, true}, {92, 88, 96, false}, {85, 80, 89, true}, {85, 79, 91, false}} {
		if got := r.Certain(c.value, c.lo, c.hi); got != c.want {
			t.Errorf("%v in %v to %v: %v", c.value, c.lo, c.hi, got)
		}
	}
	if d := Difference(1, 0); !math.IsInf(d, 1) {
		t.Errorf("%v of zero", d)
	}
}
