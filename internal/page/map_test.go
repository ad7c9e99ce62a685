package page_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/page"
)

const (
	mapRanks = 40
	mapSteps = 25
	mapSlow  = 23 // the rank for which the others wait
)

// job is a job in a fleet's store, and its steps.
func job(t *testing.T) (path string, steps []pattern.Step) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store")
	s, err := store.NewDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for rank := range int32(mapRanks) {
		for n := range int64(mapSteps) {
			wait := 50_000_000 + r.Int64N(1_000_000)
			if rank == mapSlow {
				wait = 1_000_000
			}
			steps = append(steps, pattern.Step{PID: 100 + rank, Rank: rank, Number: n, BeginNS: epoch + n*1e8 + int64(rank)*1000, PeriodNS: 99_000_000,
				WaitNS: wait, LoadNS: -1})
		}
	}
	_, err = store.Send(t.Context(), s, store.Batch{Session: "s", Job: "llama", Host: "node", Tool: "1", Steps: steps, Patterns: []pattern.Pattern{{
		PID: 100, BeginNS: epoch, EndNS: epoch + 1e9, ObservedNS: 1e9, Class: pattern.Python, Name: "train", Basis: pattern.Sampled}}})
	if err != nil {
		t.Fatal(err)
	}
	return path, steps
}

type mapPicture struct {
	Rows, Columns int
	Titles        []string
	cells         []byte
}

func (c client) cells(query string) (p mapPicture) {
	c.t.Helper()
	body := c.get("/api/map/cells?" + query)
	head := int(binary.LittleEndian.Uint32([]byte(body)))
	if err := json.Unmarshal([]byte(body[4:4+head]), &p); err != nil {
		c.t.Fatal(err)
	}
	p.cells = []byte(body[4+head:])
	return p
}

// One slow rank among many is in the picture, however few lines that has, and its cell leads to it.
func TestTheJobMapShowsTheRankThatOthersWaitFor(t *testing.T) {
	path, steps := job(t)
	c := serve(t, filepath.Join(path, store.Version), page.Options{Store: path})
	var d struct {
		Job            string
		Ranks          int
		Steps, Span_NS int64
		Numbers        [2]int64
		Slowest        []struct{ Title string }
	}
	if err := json.Unmarshal([]byte(c.get("/api/map")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Job != "llama" || d.Ranks != mapRanks || d.Steps != int64(len(steps)) || d.Numbers != [2]int64{0, mapSteps} ||
		d.Slowest[0].Title != fmt.Sprintf("rank %d", mapSlow) {
		t.Errorf("%+v", d)
	}
	for _, rows := range []int{1, 4, mapRanks} {
		for _, axis := range []string{"time&from=0&until=2500000000", "step&from=0&until=25"} {
			for metric, least := range map[string]uint8{"off": 200, "wait": 0} {
				p := c.cells(fmt.Sprintf("metric=%s&sort=rank&first=0&last=%d&rows=%d&columns=50&axis=%s", metric, mapRanks, rows, axis))
				if p.Rows != rows || len(p.cells) != rows*50 || p.Titles[0] != "rank 0" {
					t.Fatalf("%d rows of %d, %d cells, %q", p.Rows, rows, len(p.cells), p.Titles)
				}
				for row := range rows {
					slow := row == mapSlow*rows/mapRanks
					for _, value := range p.cells[row*50 : (row+1)*50] {
						marked := value >= least && value != 255
						if metric == "wait" {
							marked = value < 10
						}
						if marked != slow {
							t.Fatalf("%s, %s: row %d of %d has a cell of %d", metric, axis, row, rows, value)
						}
					}
				}
			}
		}
	}
	var found struct {
		Title  string
		Number int
		WaitNS float64 `json:"wait_ns"`
	}
	if err := json.Unmarshal([]byte(c.get("/api/map/step?metric=off&sort=rank&first=20&last=30&rows=1&columns=1&from=510000000&until=520000000")),
		&found); err != nil {
		t.Fatal(err)
	}
	if found.Title != fmt.Sprintf("rank %d", mapSlow) || found.Number != 5 || found.WaitNS < 0.9e6 || found.WaitNS > 1.1e6 {
		t.Errorf("%+v", found)
	}
	// A part of the time has the steps that reach into it, and no others.
	p := c.cells("metric=period&sort=rank&first=0&last=1&rows=1&columns=4&from=499000000&until=503000000&axis=time")
	if p.cells[0] != 255 || p.cells[3] != 254 {
		t.Errorf("between two steps: %v", p.cells)
	}
	for query, want := range map[string]string{
		"metric=x&sort=rank&first=0&last=1&rows=1&columns=1&from=0&until=1":   "off, wait, load or period",
		"metric=off&sort=x&first=0&last=1&rows=1&columns=1&from=0&until=1":    "rank, host or slow",
		"metric=off&sort=rank&first=0&last=1&rows=0&columns=1&from=0&until=1": "rows",
		"metric=off&sort=rank&first=0&last=1&rows=1&columns=1&from=2&until=1": "not before",
		"metric=off&sort=rank&first=9&last=1&rows=1&columns=1&from=0&until=1": "not before",
	} {
		if answer, body := c.do("GET", "/api/map/cells?"+query, nil); answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s", query, answer.Status, body)
		}
	}
	if answer, _ := c.do("GET", "/api/map?job=other", nil); answer.StatusCode != http.StatusNotFound {
		t.Error(answer.Status)
	}
}

// A dataset without steps has an empty map.
func TestAMapWithoutSteps(t *testing.T) {
	c := serve(t, write(t, loop()), page.Options{})
	if body := c.get("/api/map"); !strings.Contains(body, `"ranks":0`) {
		t.Error(body)
	}
}

// By clicks and keys from the map of a store to the rank and the command that asks for its events.
func TestTheJobMapInABrowser(t *testing.T) {
	path, _ := job(t)
	b := browseWith(t, filepath.Join(path, store.Version), page.Options{Store: path})
	b.open("")
	b.until(`main.map.meta.ranks === 40 && document.querySelectorAll("#views a").length === 3`)
	place := evaluate[[]float64](b, fmt.Sprintf(`(() => {
		const m = main.map, r = m.canvas.getBoundingClientRect(), v = m.view;
		return [r.left + 600, r.top + 22 + m.tall * (%d.5 - v.first) / (v.last - v.first)];
	})()`, mapSlow))
	b.do(chromedp.MouseClickXY(place[0], place[1]))
	b.until(fmt.Sprintf(`document.querySelector(".inspector h2")?.textContent.startsWith("rank %d, step ") === true`, mapSlow))
	b.until(`document.querySelector(".inspector code").textContent.includes("fleet capture") && document.querySelector(".inspector code").textContent.includes("--job llama")`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until(fmt.Sprintf(`document.querySelector(".inspector h2")?.textContent.startsWith("rank %d, step ") === true`, mapSlow+1))
	b.do(chromedp.KeyEvent("w"), chromedp.KeyEvent("w"))
	b.until(`main.map.view.until - main.map.view.from < main.map.meta.span_ns / 3 && location.hash.includes("from=") && main.map.drawn.until === Math.ceil(main.map.view.until)`)
	link := evaluate[string](b, "location.hash.slice(1)")
	b.open(link)
	b.until(`main.map.view !== null && main.map.view.until - main.map.view.from < main.map.meta.span_ns / 3`)
	b.do(chromedp.KeyEvent("f"))
	b.until(`main.map.view.until === main.map.meta.span_ns`)
	b.clean()
}
