package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/testkit/browser"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// tab is a page in a real browser.
type tab struct {
	t       *testing.T
	ctx     context.Context
	server  *page.Server
	address string // without a view

	mu       sync.Mutex
	requests []string
	problems []string // what the browser's console complained about
}

// browse serves a dataset and starts a browser; what the console says and where requests go is checked at the end.
func browse(t *testing.T, path string) *tab {
	t.Helper()
	return browseWith(t, path, page.Options{})
}

func browseWith(t *testing.T, path string, o page.Options) *tab {
	t.Helper()
	b := &tab{t: t, ctx: browser.Start(t)}
	server, err := page.New(path, o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := page.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, server.Close()); err != nil {
			t.Error(err)
		}
	})
	b.server, b.address = server, listener.Addr().String()
	err = chromedp.Listen(b.ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" {
				b.problems = append(b.problems, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// open shows a view in a fresh page.
func (b *tab) open(link string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"))
	for { // chromium gives up when the machine gets or loses a network, as it does beside other tests
		err := chromedp.Do(b.ctx, chromedp.Navigate(b.server.Address(b.address, link)))
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "ERR_NETWORK_CHANGED") {
			b.t.Fatal(err)
		}
	}
	b.until(`document.querySelector("main[data-drawn=yes]") !== null`)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// patience is after how long a hung page fails its test instead of all tests.
var patience = 3 * time.Minute

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	tooLong := time.After(patience)
	for {
		if evaluate[bool](b, expression) {
			return
		}
		select {
		case <-tooLong:
			b.t.Fatalf("%s never came true; the address is %s, %s has the keyboard, and the page shows: %s", expression,
				evaluate[string](b, "location.href"), evaluate[string](b, "document.activeElement.outerHTML.slice(0, 80)"),
				evaluate[string](b, "document.body.innerText.slice(0, 2000)"))
		case <-time.After(10 * time.Millisecond): // between looks
		}
	}
}

// clean checks that the browser had nothing to complain about and sent nothing elsewhere.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		b.t.Errorf("the console has %q", b.problems)
	}
	ours := 0
	for _, to := range b.requests {
		u, err := url.Parse(to)
		switch {
		case err == nil && u.Host == b.address:
			ours++
		case to == "about:blank":
		default:
			b.t.Errorf("a request went to %.200s", to)
		}
		if strings.Contains(to, "token") {
			b.t.Errorf("the token is in a request: %s", to)
		}
	}
	if ours < 5 {
		b.t.Errorf("only %d requests were seen: are requests watched at all?", ours)
	}
}

func TestThePageInABrowser(t *testing.T) {
	dir := write(t, loop())
	b := browse(t, dir)

	b.open("")
	verdict := evaluate[string](b, `document.querySelector(".verdict .first").textContent`)
	if !strings.Contains(report(t, dir), verdict[:min(40, len(verdict))]) {
		t.Errorf("the page says %q", verdict)
	}
	if address := evaluate[string](b, "location.href"); strings.Contains(address, "token") {
		t.Errorf("the address still has the token: %s", address)
	}

	// By the keyboard alone to the timeline.
	b.do(chromedp.KeyEvent("2"))
	b.until(`document.querySelector("main.timeline[data-drawn=yes]") !== null`)
	b.drawnAsSQL(dir)

	// Zooming in, as far as calls are drawn as themselves, writes the address; the address restores the view.
	before := evaluate[float64](b, "main.timeline.view.until - main.timeline.view.from")
	for range 9 {
		b.do(chromedp.KeyEvent("w"))
	}
	b.until(fmt.Sprintf("main.timeline.view.until - main.timeline.view.from < %f / 50", before))
	b.until("main.timeline.picture.count > 0 && main.timeline.picture.bin_ns < 300000")
	b.until(`location.hash.startsWith("#timeline?from=")`)
	b.until("main.timeline.asked !== null && main.timeline.scene !== null")
	view := evaluate[string](b, "Math.round(main.timeline.view.from) + ' ' + Math.round(main.timeline.view.until)")
	b.until(`location.hash.includes("from=" + Math.round(main.timeline.view.from) + "ns")`)
	link := evaluate[string](b, "location.hash.slice(1)")
	b.open(link)
	if again := evaluate[string](b, "Math.round(main.timeline.view.from) + ' ' + Math.round(main.timeline.view.until)"); again != view {
		t.Errorf("%s restores %s, not %s", link, again, view)
	}

	// A click selects a call; the inspector shows its columns and its line.
	b.open("timeline?from=10ms&until=14ms")
	b.until("main.timeline.picture.count > 4")
	x, y := b.place("aten::linear")
	b.do(chromedp.MouseClickXY(x, y))
	b.until(`document.querySelector(".inspector h2")?.textContent === "aten::linear"`)
	b.until(`document.querySelector(".inspector .stack a")?.textContent === "train.py:12"`)
	b.until(`location.hash.includes("sel=7.7~")`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until(`document.querySelector(".inspector h2")?.textContent === "aten::addmm"`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.until(`document.querySelector("#live").textContent.includes("aten::addmm")`)

	// A drag selects a box: the numbers are those of the selection's query.
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.DragAndDropXY(400, y-10, 900, y+30))
	b.until(`document.querySelectorAll(".inspector tbody tr").length === 2`)
	if calls := evaluate[string](b, `document.querySelector(".inspector tbody tr td:nth-child(3)").textContent`); calls != evaluate[string](b,
		`String(Math.ceil((main.timeline.selection.until - 1e-9) / 1e6) - Math.ceil(main.timeline.selection.from / 1e6))`) {
		t.Errorf("the box has %s calls", calls)
	}
	if estimate := evaluate[string](b, `document.querySelector(".inspector tbody tr td:nth-child(4)").textContent`); !strings.HasPrefix(
		estimate, "≈") {
		t.Errorf("calls of a slice represent %q", estimate)
	}

	// What was not recorded says so, and is no idleness.
	b.open("timeline?from=600ms&until=900ms")
	_, y = b.row("python3 7 (main)", 0)
	b.do(chromedp.MouseEvent("mouseMoved", 700, y))
	b.until(`document.querySelector(".tip").textContent.startsWith("not recorded")`)

	// Help, its letters, and the other views.
	b.do(chromedp.KeyEvent("?"))
	b.until(`document.querySelector("#help").open && document.querySelector("#help").textContent.includes("zoom in and out")`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("#help").open`)
	b.do(chromedp.KeyEvent("3"))
	b.until(`document.querySelector("main.flame[data-drawn=yes]") !== null && main.flame.boxes.length > 2`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until(`main.flame.path.length > 0`)
	b.do(chromedp.KeyEvent("4"))
	b.until(`document.querySelector("main.source[data-drawn=yes]") !== null && document.querySelectorAll(".line").length > 1`)

	// Back leads to the view before.
	b.do(chromedp.NavigateBack())
	b.until(`document.querySelector("main.flame") !== null`)
	b.clean()
}

// From an operator to its calls on the timeline, from a launch to its kernel, to a counter, and to a query: by clicks.
func TestFromATableToItsPlacesByClicks(t *testing.T) {
	b := browse(t, write(t, launching()))
	b.open("operators")
	b.do(chromedp.Click(`//button[text()="aten::addmm"]`))
	b.until(`document.querySelector("main.timeline[data-drawn=yes]") !== null && main.timeline.marks.places?.rows === 500`)
	b.until(`location.hash.includes("mark=name")`)

	b.open("timeline?from=10ms&until=14ms")
	b.until("main.timeline.picture.count > 4")
	x, y := b.place("cudaLaunchKernel")
	b.do(chromedp.MouseClickXY(x, y))
	b.until(`document.querySelector(".flows th")?.textContent === "gemm" && main.timeline.flows.edges.length === 1`)
	b.do(chromedp.Click(`.flows button`))
	b.until(`document.querySelector(".inspector h2")?.textContent === "gemm"`)

	b.open("timeline?counters=cpu")
	b.until(`main.timeline.layout.blocks.filter((k) => k.kind === "counter").length === 1`)
	b.until(`main.timeline.counters.bins.get(0)?.length > 1`)

	b.open("sql?q=SELECT 9007199254740993 AS large, name FROM span LIMIT 3")
	b.until(`document.querySelector(".result tbody th")?.textContent === "9007199254740993"`)
	// One dataset has no comparison: its key leads nowhere.
	b.do(chromedp.KeyEvent("0"))
	if at := evaluate[string](b, "location.hash"); !strings.HasPrefix(at, "#sql") {
		t.Errorf("the key 0 leads to %s", at)
	}
	// Without a number to draw there is a table and no chart, and no word in the chart's place.
	b.open("sql?q=SELECT 'x' AS only")
	b.until(`document.querySelector(".result tbody th")?.textContent === "x"`)
	if evaluate[bool](b, `[...document.querySelector(".result").childNodes].some((n) => n.nodeType === Node.TEXT_NODE)`) {
		t.Error("the answer has text beside its table")
	}
	b.clean()
}

// drawnAsSQL compares the draw list of the whole recording with SQL: the calls of each row.
func (b *tab) drawnAsSQL(dir string) {
	b.t.Helper()
	b.until("main.timeline.laid.done && main.timeline.picture !== null && !main.timeline.picture.partial")
	drawn := evaluate[map[string]float64](b, `(() => {
		const p = main.timeline.picture, sums = {};
		for (let i = 0; i < p.count; i++) sums[p.names[p.name[i]][0]] = (sums[p.names[p.name[i]][0]] ?? 0) + p.calls[i];
		return sums;
	})()`)
	db, err := dataset.Open(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(b.t.Context(), "SELECT name, count(*)::DOUBLE FROM span GROUP BY ALL")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var calls float64
		if err := rows.Scan(&name, &calls); err != nil {
			b.t.Fatal(err)
		}
		if drawn[name] != calls {
			b.t.Errorf("%v calls of %s are drawn, %v were recorded", drawn[name], name, calls)
		}
	}
}

// place is where on the page the first drawn call of a name is.
func (b *tab) place(name string) (x, y float64) {
	b.t.Helper()
	at := evaluate[[]float64](b, fmt.Sprintf(`(() => {
		const t = main.timeline, p = t.picture, r = t.canvas.getBoundingClientRect();
		for (let i = 0; i < p.count; i++) {
			const from = t.x(p.from_ns + p.start[i] * p.unit_ns), width = p.duration[i] * p.unit_ns / t.perPixel;
			if (p.names[p.name[i]][0] !== %q || p.flags[i] & 8 || from < 200 || from + width > t.width) continue;
			const block = t.layout.blocks.find((k) => k.lane?.number === p.numbers[p.lane[i]]);
			return [r.left + from + width / 2, r.top + block.top + 16 * p.depth[i] + 8 - t.scroller.scrollTop];
		}
		return [];
	})()`, name))
	if len(at) != 2 {
		b.t.Fatalf("no call of %s is drawn", name)
	}
	return at[0], at[1]
}

// row is the middle of a lane's row on the page.
func (b *tab) row(title string, depth int) (x, y float64) {
	b.t.Helper()
	at := evaluate[[]float64](b, fmt.Sprintf(`(() => {
		const t = main.timeline, r = t.canvas.getBoundingClientRect(), block = t.layout.blocks.find((k) => k.text === %q);
		return block ? [r.left + t.width / 2, r.top + block.top + 16 * %d + 8 - t.scroller.scrollTop] : [];
	})()`, title, depth))
	if len(at) != 2 {
		b.t.Fatalf("no lane is called %s", title)
	}
	return at[0], at[1]
}

// Names are the traced job's. None of them is run, turns a line around, or takes the page down.
func TestHostileNamesStayText(t *testing.T) {
	names := []string{
		`</script><script>window.hacked = 1</script>`, `<img src=x onerror="window.hacked = 2">`, `javascript:window.hacked=3`,
		"bidi \u202e\u2066 name", "NUL \x00 and \x1b[31m",
		strings.Repeat("long ", 2<<20), "", "\xff\xfe no UTF-8", `"><svg onload=window.hacked=4>`, "__proto__", "constructor",
	}
	b := &event.Batch{}
	for i, name := range names {
		pid := int32(i + 1)
		stack := int64(i + 1)
		short := name[:min(len(name), 1000)]
		b.Processes = append(b.Processes, event.Process{ID: int64(pid), PID: pid, StartedNS: epoch, Command: short})
		b.Threads = append(b.Threads, event.Thread{PID: pid, TID: pid, Name: short, Role: &short})
		b.Stacks = append(b.Stacks, event.Stack{ID: stack, Folded: short, Status: event.StackComplete,
			Frames: []event.Frame{{Kind: "python", Function: short, File: "/job/" + short, Line: 1, Offset: -1}}})
		b.Samples = append(b.Samples, event.Sample{TSNS: epoch, PID: pid, TID: pid, State: event.OnCPU, WeightNS: 1e7, StackID: &stack})
		for k := range int64(20) {
			b.Spans = append(b.Spans, event.Span{ID: int64(i)*20 + k + 1, StartNS: epoch + k*1e6, DurationNS: 900_000, PID: pid, TID: pid,
				Call: &event.Call{Layer: "op", Name: name}, Weight: 1, SequenceNumber: -1, PythonStackID: stack, PythonStackSource: event.LineOwn})
		}
	}
	p := browse(t, write(t, b))
	for _, link := range []string{"", "operators", "path", "path?step=<b>", "memory",
		"sql?q=SELECT * FROM span ORDER BY span_id LIMIT 30", "sql?q=SELECT name, 1 AS n FROM span", "schema?find=<b>",
		"timeline?mark=name~op~</script>", "timeline?mark=finding~0", "timeline?mark=<b>&counters=<b>", "timeline",
		"timeline?from=0ns&until=3ms", "flame", "source", "flame?state=off_cpu", "source?file=%3Cscript%3E",
		"timeline?from=</script>&sel=x~1&box=1-2~<b>"} {
		p.open(link)
	}
	if got := evaluate[int](p, "document.querySelectorAll('main *').length"); got == 0 {
		t.Error("the last view is empty")
	}
	p.open("timeline?from=0ns&until=3ms&sel=6.6~101")
	p.until(`document.querySelector(".inspector")?.textContent.includes("bytes)")`)
	if evaluate[bool](p, "'hacked' in window || document.querySelector('img, main script') !== null") {
		t.Error("a name was run")
	}
	if text := evaluate[string](p, "document.body.innerText"); strings.ContainsAny(text, "\u202e\u2066\x00\x1b") {
		t.Error("a name on the page turns the line around")
	}
	p.mu.Lock() // a refusal of a file that no stack names is an entry of the console, too
	for i, problem := range p.problems {
		if strings.Contains(problem, "404 (Not Found)") {
			p.problems[i] = ""
		}
	}
	p.problems = nonEmpty(p.problems)
	p.mu.Unlock()
	p.clean()
}

func nonEmpty(all []string) (kept []string) {
	for _, s := range all {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// The page goes on when its server is started again, and says meanwhile what is the matter.
func TestAPageWithoutItsServerSaysSo(t *testing.T) {
	dir := write(t, loop())
	b := &tab{t: t, ctx: browser.Start(t)}
	server, err := page.New(dir, page.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	listener, err := page.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	b.server, b.address = server, listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	b.open("timeline")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	b.until(`(document.querySelector("main").timeline.ask(), document.querySelector("#notice").textContent.includes("does not answer") || (main.timeline.asked = null, false))`)
	if !evaluate[bool](b, "main.timeline.picture.count > 0") {
		t.Error("what was drawn is gone")
	}
}
