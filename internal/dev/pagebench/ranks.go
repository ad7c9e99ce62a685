package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/testkit/browser"
)

// measureMaps draws the job map of stores of so many ranks.
func measureMaps(sizes, dir string) error {
	if sizes == "" {
		return nil
	}
	fmt.Println("\n| ranks x steps | first paint | map drawn | frames: median, 95 %, longest |\n| --- | --- | --- | --- |")
	for text := range strings.SplitSeq(sizes, ",") {
		var ranks, steps int
		if n, _ := fmt.Sscanf(text, "%dx%d", &ranks, &steps); n != 2 || ranks < 1 || steps < 1 {
			return fmt.Errorf("-ranks %q: give them as 10000x200", text)
		}
		path := filepath.Join(dir, "ranks-"+text)
		if _, err := os.Stat(path); err != nil {
			if err := writeStore(path, ranks, steps); err != nil {
				return err
			}
		}
		painted, drawn, gestured, err := paint(filepath.Join(path, store.Version), page.Options{Store: path}, "map")
		if err != nil && !errors.Is(err, browser.ErrNone) {
			return err
		}
		fmt.Printf("| %s | %s | %s | %s |\n", text, painted, drawn, gestured)
	}
	return nil
}

// writeStore makes a job of which one rank is slow and one host loads slowly for a while: all others wait for them.
func writeStore(path string, ranks, steps int) error {
	s, err := store.Create(path)
	if err != nil {
		return err
	}
	const each = 8 // ranks of a host
	r := rand.New(rand.NewPCG(3, 3))
	begins := make([]int64, steps)
	periods := make([]int64, steps)
	at := int64(epoch)
	for i := range begins {
		begins[i], periods[i] = at, 900e6+r.Int64N(100e6)
		at += periods[i]
	}
	for begin := 0; begin < ranks; begin += 1000 {
		b := store.Batch{Session: fmt.Sprintf("s%d", begin), Job: "bench", Host: fmt.Sprintf("node-%d", begin/each), Tool: "bench",
			Patterns: []pattern.Pattern{{Job: "bench", PID: 1, BeginNS: epoch, EndNS: at, ObservedNS: at - epoch, Class: pattern.Python, Name: "train",
				Basis: pattern.Sampled}}}
		for rank := begin; rank < min(begin+1000, ranks); rank++ {
			for i := range steps {
				own := int64(0.55*9e8) + r.Int64N(40e6)
				load := int64(5e6)
				if rank == ranks/3 {
					own = periods[i] - 5e6
				}
				if rank/each == ranks/each/2 && i > steps/2 && i < steps*3/4 {
					own, load = periods[i]-20e6, 350e6
				}
				b.Steps = append(b.Steps, pattern.Step{Job: "bench", Host: b.Host, PID: int32(1000 + rank), Rank: int32(rank), Number: int64(i),
					BeginNS: begins[i] + r.Int64N(2e6), PeriodNS: periods[i], WaitNS: max(0, periods[i]-own), LoadNS: load})
			}
		}
		if _, err := store.Send(context.Background(), s, b); err != nil {
			return err
		}
	}
	return nil
}
