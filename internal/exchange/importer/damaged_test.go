package importer

import (
	"fmt"
	"strings"
	"testing"
)

// layers are six times aten::linear with aten::addmm in it, and in this aten::empty and a
// launch; some durations are replaced, by the number of the call and its name.
func layers(damaged map[string]string) string {
	var events []string
	add := func(i int, category, name string, at, duration float64) {
		text := fmt.Sprint(duration)
		if bad, is := damaged[fmt.Sprint(i, " ", name)]; is {
			text = bad
		}
		events = append(events, fmt.Sprintf(`{"ph": "X", "cat": %q, "name": %q, "pid": 7, "tid": 8, "ts": %g, "dur": %s, "args": {"call": %d}}`,
			category, name, at, text, i))
	}
	for i := range 6 {
		at := float64(100 * i)
		add(i, "cpu_op", "aten::view", at+1, 2)
		add(i, "cpu_op", "aten::linear", at+10, 40+float64(i))
		add(i, "cpu_op", "aten::addmm", at+15, 30-float64(i%2))
		add(i, "cpu_op", "aten::empty", at+17, 1.5+float64(i)/8)
		add(i, "cuda_runtime", "cudaLaunchKernel", at+38, 5)
		add(i, "cpu_op", "aten::relu", at+60, 10)
	}
	return strings.Join(events, ",\n")
}

// Calls whose durations cannot be stand where they did, and so does what they called.
func TestCallsWithDamagedDurationsAreNestedLikeOthers(t *testing.T) {
	const nested = `string_agg(concat(s.name, ' ', s.ts_ns, ' in ', p.name, ' ', p.ts_ns), chr(10) ORDER BY s.ts_ns, s.name)
		FROM span s LEFT JOIN span p ON p.span_id = s.parent_id`
	db, _ := importFiles(t, file(t, "t.json", trace(layers(nil))))
	want := one(t, db, "SELECT "+nested)
	if strings.Count(want, "cudaLaunchKernel") != 6 || strings.Count(want, "in aten::addmm") != 12 {
		t.Fatal(want)
	}
	for name, damaged := range map[string]map[string]string{
		"negative":            {"1 aten::addmm": "-3", "4 aten::linear": "-1e9", "2 aten::empty": "-1"},
		"of years":            {"0 aten::linear": "9e15", "3 aten::addmm": "1e12", "5 cudaLaunchKernel": "3e9"},
		"past its caller":     {"2 aten::addmm": "250000", "4 aten::empty": "90000", "1 cudaLaunchKernel": "5000"},
		"caller and callee":   {"2 aten::linear": "-1", "2 aten::addmm": "9e15", "2 aten::empty": "-1"},
		"the longest of them": {"5 aten::linear": "-1", "0 aten::addmm": "-1"},
	} {
		db, _ := importFiles(t, file(t, "t.json", trace(layers(damaged))))
		if got := one(t, db, "SELECT "+nested); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// A call that lasts long and ends where its caller does is what it says, however long its
// like last; so are the calls of a kind of which there are few.
func TestLongCallsAreNotTakenForDamaged(t *testing.T) {
	const nested = `string_agg(concat(s.name, ' ', s.duration_ns, ' in ', p.name), ', ' ORDER BY s.ts_ns, s.name)
		FROM span s LEFT JOIN span p ON p.span_id = s.parent_id WHERE s.ts_ns >= (SELECT max(ts_ns) FROM span WHERE name = 'aten::item')`
	db, _ := importFiles(t, file(t, "t.json", trace(layers(nil)+`,
{"ph": "X", "cat": "cpu_op", "name": "aten::item", "pid": 7, "tid": 8, "ts": 700, "dur": 40020},
{"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 7, "tid": 8, "ts": 705, "dur": 40000},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 7, "tid": 8, "ts": 706, "dur": 39990}`)))
	if got, want := one(t, db, "SELECT "+nested), "aten::item 40020000 in , aten::empty 40000000 in aten::item, cudaStreamSynchronize "+
		"39990000 in aten::empty"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
