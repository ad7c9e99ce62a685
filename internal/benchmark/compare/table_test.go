package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// golden was written once by ReFrame's own functions: testdata/make.py says how.
type golden struct {
	Left   []testcase `json:"left"`
	Right  []testcase `json:"right"`
	Tables []struct {
		Spec    string   `json:"spec"`
		Columns []string `json:"columns"`
		Rows    [][]any  `json:"rows"`
	} `json:"tables"`
	Pairs       [][2]float64 `json:"pairs"`
	Differences []any        `json:"differences"`
}

type testcase struct {
	Name      string           `json:"name"`
	System    string           `json:"system"`
	Partition string           `json:"partition"`
	Environ   string           `json:"environ"`
	Size      string           `json:"size"`
	Values    map[string][]any `json:"perfvalues"`
}

func (c testcase) rows() (all []Row) {
	var names []string
	for name := range c.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v := c.Values[name]
		base, _, _ := strings.Cut(c.Name, " ")
		all = append(all, Row{"name": c.Name, "basename": base, "system": c.System, "partition": c.Partition, "environ": c.Environ,
			"size":   c.Size,
			"sysenv": c.System + ":" + c.Partition + "+" + c.Environ, "pvar": name[strings.LastIndexByte(name, ':')+1:], "pval": v[0], "pref": v[1],
			"punit": v[4]})
	}
	return all
}

func rowsOf(cases []testcase) (all []Row) {
	for _, c := range cases {
		all = append(all, c.rows()...)
	}
	return all
}

func read(t *testing.T) (g golden) {
	t.Helper()
	text, err := os.ReadFile("testdata/tables.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// alike says whether a cell is what ReFrame has in it. Sums are added up in another order there.
func alike(got, want any) bool {
	if s, ok := want.(string); ok && slices.Contains([]string{"inf", "-inf", "nan"}, s) {
		want, _ = strconv.ParseFloat(s, 64)
	}
	g, isNumber := number(got)
	w, wants := number(want)
	if isNumber && wants {
		return g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= 1e-12*math.Abs(w)
	}
	return got == want
}

func TestTablesAreThoseOfReFrame(t *testing.T) {
	g := read(t)
	left, right := rowsOf(g.Left), rowsOf(g.Right)
	if len(g.Tables) < 12 || len(left) < 80 {
		t.Fatalf("%d tables of %d rows", len(g.Tables), len(left))
	}
	for _, want := range g.Tables {
		spec, err := Parse(want.Spec, time.Now())
		if err != nil {
			t.Errorf("%s: %v", want.Spec, err)
			continue
		}
		got, err := spec.Table(left, right)
		if err != nil {
			t.Errorf("%s: %v", want.Spec, err)
			continue
		}
		if !slices.Equal(got.Columns, want.Columns) || len(got.Rows) != len(want.Rows) || len(got.Rows) == 0 {
			t.Errorf("%s: %d rows of %q, ReFrame has %d of %q", want.Spec, len(got.Rows), got.Columns, len(want.Rows), want.Columns)
			continue
		}
		for i, row := range got.Rows {
			for k, cell := range row.Cells {
				if !alike(cell, want.Rows[i][k]) {
					t.Errorf("%s: row %d, %s: %v, ReFrame has %v", want.Spec, i, want.Columns[k], cell, want.Rows[i][k])
				}
			}
		}
	}
}

func TestDifferencesAreThoseOfReFrame(t *testing.T) {
	g := read(t)
	if len(g.Pairs) < 1000 || len(g.Differences) != len(g.Pairs) {
		t.Fatalf("%d pairs, %d differences", len(g.Pairs), len(g.Differences))
	}
	spec, err := Parse("now-1d:now/now-1d:now/mean:/", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, pair := range g.Pairs {
		row := func(v float64) []Row {
			return []Row{{"name": "t", "sysenv": "a", "pvar": "v", "punit": "s", "pval": v}}
		}
		table, err := spec.Table(row(pair[0]), row(pair[1]))
		if err != nil {
			t.Fatal(err)
		}
		if cells := table.Rows[0].Cells; !alike(cells[len(cells)-1], g.Differences[i]) {
			t.Errorf("%v against %v: %v, ReFrame has %v", pair[0], pair[1], cells[len(cells)-1], g.Differences[i])
		}
	}
}

func TestWhatIsNoComparisonSaysWhatToGive(t *testing.T) {
	for text, want := range map[string]string{
		"last/mean:":              "give [SELECT/]SELECT",
		"last/last/mean/":         "give AGGREGATION:[GROUP]",
		"last/last/average:/":     "unknown aggregation",
		"last/last/p5:/":          "unknown aggregation",
		"last/last/mean:a+b/":     "give either",
		"yesterday/last/mean:/":   "selects nothing",
		"now-7y:now/last/mean:/":  "is no time",
		"now-7d:now?/last/mean:/": "an expression",
	} {
		if _, err := Parse(text, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	spec, err := Parse("last/last/mean(pref):/", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Table(nil, nil); err == nil {
		t.Error("a comparison that aggregates no pval is taken")
	}
}

func TestTimesAreThoseOfReFrame(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"now": now, "now-7d": now.AddDate(0, 0, -7), "now+2h": now.Add(2 * time.Hour), "now-3w": now.AddDate(0, 0, -21),
		"now-5m":   now.Add(-5 * time.Minute),
		"20261101": time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local), "20261101T1230": time.Date(2026, 11, 1, 12, 30, 0, 0, time.Local),
		"20261101T123005+0100": time.Date(2026, 11, 1, 11, 30, 5, 0, time.UTC), "20261101+1d": time.Date(2026, 11, 2, 0, 0, 0, 0, time.Local),
	} {
		if got, err := parseTime(text, now); err != nil || got.Sub(want).Abs() > time.Hour && !strings.Contains(text, "w") &&
			!strings.Contains(text, "d") || got.Sub(want).Abs() > 2*time.Hour {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
}

// runs are rows of one group.
func runs(pvar string, values ...float64) (rows []Row) {
	for _, v := range values {
		rows = append(rows, Row{"name": "a", "pvar": pvar, "pval": v})
	}
	return rows
}

func TestADifferenceWithinTheNoiseIsNone(t *testing.T) {
	for _, c := range []struct {
		left, right []Row
		want        Worth
	}{
		{runs("throughput", 100, 101, 99), runs("throughput", 100, 102, 98), Within},
		{runs("throughput", 100, 101, 99), runs("throughput", 80, 81, 79), Better},
		{runs("throughput", 80, 81, 79), runs("throughput", 100, 101, 99), Worse},
		{runs("step_time", 80, 81, 79), runs("step_time", 100, 101, 99), Better},
		{runs("loss", 80, 81, 79), runs("loss", 100, 101, 99), Less},
		{runs("step_time", 80, 120, 60), runs("step_time", 100, 140, 70), Within},
		{runs("step_time", 101.5, 101.5), runs("step_time", 100, 100), Within}, // less than two percent
		{runs("step_time", 80), runs("step_time", 100, 101), Unknown},
	} {
		if got := Between(c.left, c.right); got.Verdict != c.want {
			t.Errorf("%v against %v: %+v, want %s", fmt.Sprint(c.left), fmt.Sprint(c.right), got, c.want)
		}
	}
}
