package e2e

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// deviceReport is one line of the books that allocator.py keeps of its device.
type deviceReport struct{ address, bytes, live, reserved int64 }

func readReports(t *testing.T, file string) []deviceReport {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []deviceReport
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(b[8*i:])) }
	for ; len(b) >= 32; b = b[32:] {
		all = append(all, deviceReport{word(0), word(1), word(2), word(3)})
	}
	return all
}

// TestTotalsOfASlicedAllocatorAreExact: at level anchor 50,000 allocator events a
// second are recorded in slices. What the device's allocator has in use and has
// reserved is in each of its events, and so is exact in every slice, though most
// events have no row: each row is held against the allocator's own books.
func TestTotalsOfASlicedAllocatorAreExact(t *testing.T) {
	harness.EachTorch(t, func(t *testing.T, v harness.Torch) {
		file := filepath.Join(t.TempDir(), "reports")
		// Three fifths of what all of them take, of which hits may be a part: many have no row.
		price := priced(t, harness.RecordReady(t, priceOf("memory"), v.Job("allocator.py", "--seconds", "3", "--log", file+".priced")...))
		job := harness.StartJob(t, v.Job("allocator.py", "--seconds", "16", "--log", file)...)
		tracing := harness.Attach(t, []string{"--level", "anchor", "--budget", fmt.Sprintf("%.4f%%", price/1.7)}, job.Process.Pid)
		job.GoOn(t)
		job.FinishJob(t)
		r := tracing.Finish(t)
		r.Lossless(t)

		books, at := readReports(t, file), map[[2]int64]int{}
		for i, report := range books {
			at[[2]int64{report.address, report.bytes}] = i
		}
		rows := r.Rows(t, `SELECT address, CASE action WHEN 'alloc' THEN bytes ELSE -bytes END, total_allocated_bytes, total_reserved_bytes,
			weight
			FROM memory WHERE space = 'device' ORDER BY ts_ns`)
		slices, previous, weighted := 0, -2, 0.0
		for _, row := range rows {
			i, known := at[[2]int64{harness.Integer(t, row[0]), harness.Integer(t, row[1])}]
			if !known {
				t.Fatalf("%v is in no line of the allocator's books", row)
			}
			if live, reserved := harness.Integer(t, row[2]), harness.Integer(t, row[3]); live != books[i].live || reserved != books[i].reserved {
				t.Fatalf("report %d: %d bytes in use and %d reserved, the allocator says %d and %d", i, live, reserved, books[i].live,
					books[i].reserved)
			}
			if i <= previous {
				t.Fatalf("report %d comes after %d", i, previous)
			}
			if i != previous+1 {
				slices++
			}
			previous, weighted = i, weighted+row[4].(float64)
		}
		// Within a slice nothing is missing: there are no more gaps than slices.
		begun := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'slice'")
		// How many depends on the price of a hit in this run, which can be half or twice the one that was measured before, and on
		// how fast the machine lets the job go on.
		if slices < 1 || int64(slices) > begun+1 {
			t.Errorf("the rows have %d gaps, in %d slices", slices, begun)
		}
		if len(rows) > len(books)*4/5 {
			t.Errorf("%d of %d reports have a row: that was not in slices", len(rows), len(books))
		}
		// Those before the attach are in the books too: a second of warm-up.
		during := 0
		if len(rows) > 0 {
			during = len(books) - at[[2]int64{harness.Integer(t, rows[0][0]), harness.Integer(t, rows[0][1])}]
		}
		if math.Abs(weighted/float64(during)-1) > 0.1 {
			t.Errorf("the weights add up to %.0f, the allocator reported %d times", weighted, during)
		}
		t.Logf("%d of %d reports in %d slices", len(rows), during, slices)
	})
}
