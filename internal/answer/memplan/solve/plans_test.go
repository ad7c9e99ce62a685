package solve

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPublicInstances: MiniMalloc's within their capacity, and buffers of real
// networks within 0.5 % of the lower bound, which somebody else counted.
func TestPublicInstances(t *testing.T) {
	const directory = "../../../../../shared/data/plans"
	if _, err := os.Stat(directory); err != nil {
		t.Skip("the public instances are not here: ", directory)
	}
	for _, c := range []struct {
		file  string
		most  int64
		bound int64 // 0: not told
		limit time.Duration
	}{
		{"A.1048576.csv", 1 << 20, 0, time.Minute},
		{"C.1048576.csv", 1 << 20, 0, time.Minute},
		{"G.1048576.csv", 1 << 20, 0, time.Minute},
		{"resnet50.csv", 1_515_472_556 / 1000 * 1005, 1_515_472_556, 5 * time.Second},
		{"G_1.csv", 3_030_937_746 / 1000 * 1005, 3_030_937_746, 5 * time.Second},
	} {
		if testing.Short() && c.file == "A.1048576.csv" {
			continue // half a minute under the race detector
		}
		file, err := os.Open(filepath.Join(directory, c.file))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var blocks []Block
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var id int
			var b Block
			if _, err := fmt.Sscanf(lines.Text(), "%d,%d,%d,%d", &id, &b.Lower, &b.Upper, &b.Size); err == nil {
				blocks = append(blocks, b)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.limit)
		begun := time.Now()
		plan, err := Solve(ctx, Problem{Blocks: blocks})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-16s %5d blocks: peak %d, bound %d, gap %.4f %%, %s, %v", c.file, len(blocks), plan.Peak, plan.LowerBound,
			100*plan.Gap(), plan.Solver, time.Since(begun).Round(time.Millisecond))
		if plan.Peak > c.most || c.bound > 0 && plan.LowerBound != c.bound {
			t.Errorf("%s: peak %d, at most %d; bound %d, counted %d", c.file, plan.Peak, c.most, plan.LowerBound, c.bound)
		}
	}
}
