// Pagebench measures the page of `ebpfprof serve` on recordings of many calls that it makes itself: how fast the
// timeline's levels are built and what they take, how long windows take, and when a browser shows them.
//
//	go run ./internal/dev/pagebench -spans 1000000,10000000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/testkit/browser"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func main() {
	sizes := flag.String("spans", "1000000", "how many calls the recordings have, with commas between")
	ranks := flag.String("ranks", "", "how many ranks and steps the jobs of a store have, as 10000x200, with commas between")
	dir := flag.String("dir", "", "where the recordings are kept and found again (default: made and removed)")
	flag.Parse()
	if err := run(*sizes, *ranks, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "pagebench:", err)
		os.Exit(1)
	}
}

func run(sizes, ranks, dir string) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "pagebench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	if sizes == "0" {
		return measureMaps(ranks, dir)
	}
	fmt.Println("| calls | build | calls/s | B/call | finest level kept | whole, warm | windows from files, median and longest | first " +
		"paint | timeline drawn | frames: median, 95 %, longest |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, text)
		if _, err := os.Stat(path); err != nil {
			if err := write(path, n); err != nil {
				return err
			}
		}
		if err := measure(path, n); err != nil {
			return err
		}
	}
	return measureMaps(ranks, dir)
}

const epoch = 1_790_000_000_000_000_000

// write makes a recording of eight threads, each with steps, operators in them and operators in these.
func write(path string, n int) error {
	d, err := output.Create(path, output.Options{})
	if err != nil {
		return err
	}
	if err := d.Session(event.Recording{ID: "s", StartedNS: epoch, ToolVersion: "bench"}); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 1))
	calls := make([]*event.Call, 200)
	for i := range calls {
		calls[i] = &event.Call{Layer: "op", Category: "forward", Name: fmt.Sprintf("aten::operator_%d", i)}
	}
	batch := &event.Batch{}
	id := int64(0)
	add := func(tid int32, start, duration int64, call *event.Call) {
		id++
		batch.Spans = append(batch.Spans, event.Span{ID: id, StartNS: epoch + start, DurationNS: duration, PID: 100, TID: tid, Call: call,
			End: event.EndExitSite, Weight: 1, SequenceNumber: -1})
	}
	step := &event.Call{Layer: "scope", Name: "step"}
	for at := int64(0); id < int64(n); at += 10e6 {
		batch.Spans = batch.Spans[:0]
		for tid := range int32(8) {
			add(100+tid, at, 9e6, step)
			for inside := at + 1000; inside < at+8.8e6; {
				duration := 2000 + r.Int64N(40_000)
				add(100+tid, inside, duration, calls[r.IntN(len(calls))])
				add(100+tid, inside+300, duration/2, calls[r.IntN(len(calls))])
				add(100+tid, inside+600, duration/5, calls[r.IntN(len(calls))])
				inside += duration + r.Int64N(20_000)
			}
		}
		if err := d.Write(batch); err != nil {
			return err
		}
	}
	return d.Close()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func measure(path string, n int) error {
	ctx := context.Background()
	db, err := dataset.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	var total, first, last int64
	if err := db.Row(ctx, "SELECT count(*), min(ts_ns), max(ts_ns) FROM span", nil, &total, &first, &last); err != nil {
		return err
	}
	before := heap()
	began := time.Now()
	p := pyramid.New(first, total, last-first)
	if err := p.Build(ctx, db); err != nil {
		return err
	}
	took := time.Since(began)
	bytes := float64(heap()-before) / float64(total)
	lanes := make([]int, len(p.Lanes()))
	for i := range lanes {
		lanes[i] = i
	}
	window := func(from, until int64) (time.Duration, error) {
		level := 0
		for pyramid.Width(level) < (until-from)/3000/2 {
			level++
		}
		began := time.Now()
		_, err := p.Query(ctx, db, pyramid.Window{From: from, Until: until, Level: level, Lanes: lanes, Depth: 4, Most: 20_000})
		return time.Since(began), err
	}
	whole, err := window(0, last-first)
	if err != nil {
		return err
	}
	var fine []time.Duration
	r := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		from := r.Int64N(last - first - 40e6)
		t, err := window(from, from+30e6)
		if err != nil {
			return err
		}
		fine = append(fine, t)
	}
	slices.Sort(fine)
	painted, drawn, gestured, err := paint(path, page.Options{}, "timeline")
	if err != nil && !errors.Is(err, browser.ErrNone) {
		return err
	}
	level := p.Progress().Lowest
	fmt.Printf("| %d | %.1f s | %.2f M | %.1f | %d (%v) | %.1f ms | %.0f and %.0f ms | %s | %s | %s |\n", n, took.Seconds(),
		float64(total)/took.Seconds()/1e6, bytes,
		level, time.Duration(pyramid.Width(level)), ms(whole), ms(fine[len(fine)/2]), ms(fine[len(fine)-1]), painted, drawn, gestured)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// paint starts a server and a browser, and returns when the browser had painted first and a whole view, and how even its
// frames are while somebody looks around in it.
func paint(path string, options page.Options, view string) (first, drawn, gestured string, err error) {
	tab, cancel, err := browser.Open(context.Background(), 1280, 800)
	if err != nil {
		return "no browser", "", "", err
	}
	defer cancel()
	server, err := page.New(path, options)
	if err != nil {
		return "", "", "", err
	}
	defer server.Close()
	listener, err := page.Listen(0)
	if err != nil {
		return "", "", "", err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() { _ = server.Serve(ctx, listener) }()
	began := time.Now()
	if err := chromedp.Do(tab, chromedp.Navigate(server.Address(listener.Addr().String(), view))); err != nil {
		return "", "", "", err
	}
	if err := chromedp.Do(tab, chromedp.WaitReady(`main[data-drawn=yes]`)); err != nil {
		return "", "", "", err
	}
	all := time.Since(began)
	at, err := chromedp.Run(tab, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1`))
	if err != nil {
		return "", "", "", err
	}
	if gestured, err = frames(tab); err != nil {
		return "", "", "", err
	}
	return fmt.Sprintf("%.0f ms", at), fmt.Sprintf("%.1f s", all.Seconds()), gestured, nil
}
