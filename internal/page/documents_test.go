package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/analysis"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/data"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/memory"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// printed is what a command prints.
func printed(t *testing.T, command *urfave.Command, arguments ...string) string {
	t.Helper()
	var out bytes.Buffer
	app := &urfave.App{Name: "ebpfprof", Writer: &out, ErrWriter: io.Discard, Commands: []*urfave.Command{command},
		ExitErrHandler: func(*urfave.Context, error) {}}
	var exit urfave.ExitCoder // a verdict, as diff has one
	if err := app.RunContext(t.Context(), append([]string{"ebpfprof", command.Name}, arguments...)); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String()
}

// ask posts a query.
func (c client) ask(sql string) (*http.Response, string) {
	return c.do("POST", "/api/query", func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(sql))
		r.ContentLength = int64(len(sql))
	})
}

func TestDocumentsAreTheCommandLinesByteForByte(t *testing.T) {
	c := serve(t, training, page.Options{})
	if got, want := c.get("/api/schema"), printed(t, cli.SchemaCommand(), "--format", "json"); got != want {
		t.Errorf("schema: %d bytes, the command line %d", len(got), len(want))
	}
	root, err := filepath.Abs(training)
	if err != nil {
		t.Fatal(err)
	}
	for path, command := range map[string]*urfave.Command{"/api/memory": memory.Command(),
		"/api/critical-path": analysis.CriticalPathCommand()} {
		if got, want := serve(t, root, page.Options{}).get(path), printed(t, command, root, "--json"); got != want {
			t.Errorf("%s: %d bytes, the command line %d: %.300s, not %.300s", path, len(got), len(want), got, want)
		}
	}
	if got, want := c.get("/api/critical-path?step=2"), printed(t, analysis.CriticalPathCommand(), root, "--step", "2",
		"--json"); got != want {
		t.Errorf("the path of step 2: %d bytes, the command line %d", len(got), len(want))
	}
	if answer, body := c.do("GET", "/api/critical-path?step=9999", nil); answer.StatusCode != http.StatusNotFound || !strings.Contains(body,
		"there is no step") {
		t.Errorf("step 9999: %s %s", answer.Status, body)
	}
	for _, sql := range []string{
		"SELECT * FROM span ORDER BY span_id LIMIT 100", "SELECT * FROM stack LIMIT 20", "SELECT 1 WHERE false",
		"SELECT 9223372036854775807 AS large, 'NaN'::DOUBLE AS nan, NULL AS none, [1, 2] AS list, '</script>' AS \"</script>\"",
	} {
		answer, got := c.ask(sql)
		if want := printed(t, data.QueryCommand(), training, sql, "--format", "json"); answer.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %s %.300s, not %.300s", sql, answer.Status, got, want)
		}
		if more := answer.Header.Get("Has-More"); more != "false" {
			t.Errorf("%s: there are more rows: %q", sql, more)
		}
	}
}

func TestTheComparisonIsTheCommandLinesByteForByte(t *testing.T) {
	before, after := write(t, loop()), write(t, launching())
	c := serve(t, after, page.Options{Before: before})
	if got, want := c.get("/api/diff"), printed(t, analysis.DiffCommand(), before, after, "--json"); got != want {
		t.Errorf("%d bytes, the command line %d: %.300s, not %.300s", len(got), len(want), got, want)
	}
	if answer, body := serve(t, before, page.Options{}).do("GET", "/api/diff", nil); answer.StatusCode != http.StatusNotFound ||
		!strings.Contains(body, "serve BEFORE AFTER") {
		t.Errorf("of one dataset: %s %s", answer.Status, body)
	}
	if _, err := page.New(after, page.Options{Before: t.TempDir()}); !errors.Is(err, dataset.ErrNotDataset) {
		t.Error(err)
	}
}

func TestAQueryIsReadOnlyAndHasAnEnd(t *testing.T) {
	c := serve(t, training, page.Options{})
	for sql, want := range map[string]string{
		"DELETE FROM span":                      "SELECT",
		"SELECT * FROM read_csv('/etc/passwd')": "",
		"SELECT nothing FROM span":              "nothing",
		"COPY span TO '/tmp/span.csv'":          "SELECT",
		"SELECT 1; SELECT 2":                    "",
		"":                                      "",
		"SELECT '" + strings.Repeat("x", 1<<17) + "'": "longer than 64 kB",
	} {
		answer, body := c.ask(sql)
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"error":`) || !strings.Contains(body, want) {
			t.Errorf("%.60s: %s %.300s", sql, answer.Status, body)
		}
	}
	answer, body := c.ask("SELECT i FROM range(1000000) t(i)")
	var rows []struct{ I int64 }
	if err := json.Unmarshal([]byte(body), &rows); err != nil || len(rows) != 10_000 || rows[9999].I != 9999 ||
		answer.Header.Get("Has-More") != "true" {
		t.Errorf("%v: %d rows, there are more: %q", err, len(rows), answer.Header.Get("Has-More"))
	}
	answer, body = c.ask("SELECT repeat('x', 1000000) AS x FROM range(100)")
	if len(body) > 20<<20 || answer.Header.Get("Has-More") != "true" || !json.Valid([]byte(body)) {
		t.Errorf("%d bytes, there are more: %q", len(body), answer.Header.Get("Has-More"))
	}
}

// launching is a thread whose launches have work on a device, with an edge of table flow, and two counters.
func launching() *event.Batch {
	b := loop()
	launch, kernel := &event.Call{Layer: "runtime", Name: "cudaLaunchKernel"}, &event.Call{Layer: "device", Name: "gemm", Category: "kernel"}
	for i := range int64(300) {
		at := epoch + i*1e6
		b.Spans = append(b.Spans,
			event.Span{ID: 10_000 + i, StartNS: at + 600_000, DurationNS: 10_000, PID: 7, TID: 7, Call: launch, Weight: 1, SequenceNumber: -1},
			event.Span{ID: 20_000 + i, StartNS: at + 650_000, DurationNS: 200_000, PID: 7, TID: 0, Call: kernel, Weight: 1, SequenceNumber: -1,
				Detail: &event.Detail{LaunchID: new(10_000 + i), Stream: new(int64(7)), DeviceID: new(int32(0))}})
	}
	b.Flows = append(b.Flows, event.Flow{TSNS: epoch + 2e6, FromSpanID: 1, ToSpanID: 3, Kind: "forward_backward", Method: "sequence_number"})
	for i := range int64(20) {
		b.Counters = append(b.Counters,
			event.Counter{TSNS: epoch + i*1e8, Source: "cpu", Device: "cpu0", Name: "cpu_user", Kind: event.Delta, Unit: "ns",
				Value: float64(i * 1e6)},
			event.Counter{TSNS: epoch + i*1e8, Source: "memory", Name: "memory_available", Kind: event.Gauge, Unit: "bytes", Value: 5e9})
	}
	return b
}

func TestFlowsLeadFromACallToWhatItCaused(t *testing.T) {
	c := serve(t, write(t, launching()), page.Options{})
	lanes := c.built()
	for _, test := range []struct {
		id   int64
		want string
	}{{10_005, "out launch gemm"}, {20_005, "in launch cudaLaunchKernel"}, {1, "out forward_backward aten::linear"},
		{3, "in forward_backward aten::linear"}, {4, ""}} {
		var d struct {
			Edges []struct {
				Out        bool
				Kind, Name string
				Lane       int
			}
		}
		if err := json.Unmarshal([]byte(c.get(fmt.Sprintf("/api/flows?lane=0&id=%d", test.id))), &d); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range d.Edges {
			got = append(got, fmt.Sprintf("%s %s %s", map[bool]string{true: "out", false: "in"}[e.Out], e.Kind, e.Name))
			if e.Lane < 0 || e.Lane >= len(lanes.Lanes) {
				t.Errorf("%d: lane %d", test.id, e.Lane)
			}
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%d: %s, want %s", test.id, got, test.want)
		}
	}
}

func TestWhatIsMarkedIsWhatSQLFinds(t *testing.T) {
	c := serve(t, write(t, launching()), page.Options{})
	c.built()
	for query, want := range map[string]int64{
		"name=aten::addmm&layer=op&from=0&until=1000000000&pixels=1000":  500,
		"name=aten::addmm&from=0&until=100000000&pixels=1000":            100,
		"name=gemm&layer=device&from=0&until=1000000000&pixels=1000":     300,
		"name=gemm&layer=op&from=0&until=1000000000&pixels=1000":         0,
		"name=aten::linear&from=5000000&until=5400000&pixels=1000":       1,
		"name=aten::linear&from=600000000&until=2000000000&pixels=1000":  0,
		"name=</script>' OR true --&from=0&until=2000000000&pixels=1000": 0,
	} {
		var d struct {
			Rows   int64
			Places []struct{ Rows, From, To int64 }
		}
		if err := json.Unmarshal([]byte(c.get("/api/marked?"+strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", "'", "%27").Replace(query))),
			&d); err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, p := range d.Places {
			sum += p.Rows
			if p.To < p.From {
				t.Errorf("%s: a place from %d to %d", query, p.From, p.To)
			}
		}
		if d.Rows != want || sum != want {
			t.Errorf("%s: %d rows, %d in places, want %d", query, d.Rows, sum, want)
		}
	}
	if answer, body := c.do("GET", "/api/marked?finding=999&from=0&until=10&pixels=1", nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s", answer.Status, body)
	}
}

func TestCountersAreReadings(t *testing.T) {
	c := serve(t, write(t, launching()), page.Options{})
	c.built()
	var lanes []struct {
		Number             int
		Source, Name, Unit string
		Rows               int64
		Most               float64
	}
	if err := json.Unmarshal([]byte(c.get("/api/counters")), &lanes); err != nil || len(lanes) != 2 || lanes[0].Name != "cpu_user" ||
		lanes[0].Rows != 20 || lanes[0].Most != 19e6 {
		t.Fatalf("%v: %+v", err, lanes)
	}
	var d struct {
		Bins []struct {
			C      int
			At     int64
			Lo, Hi float64
		}
	}
	if err := json.Unmarshal([]byte(c.get("/api/readings?from=0&until=2000000000&pixels=1000&lanes=0")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Bins) != 20 || d.Bins[7].At != 7e8 || d.Bins[7].Hi != 7e6 {
		t.Errorf("%+v", d.Bins)
	}
	// From afar a bin has the least and the most of its readings.
	if err := json.Unmarshal([]byte(c.get("/api/readings?from=0&until=2000000000&pixels=1&lanes=0,1")), &d); err != nil {
		t.Fatal(err)
	}
	if first := d.Bins[0]; first.Lo != 0 || first.Hi <= 5e6 {
		t.Errorf("%+v", d.Bins)
	}
}
