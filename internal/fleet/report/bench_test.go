package report

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/registrar"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

const (
	benchAgents  = 1000 // nodes
	benchRanks   = 8    // of each
	benchMinutes = 5    // a file of each table from each agent
	benchSlow    = 4711 // the rank that is slow in its loader
)

// thousand puts what a thousand synthetic agents send in some minutes into a store: of
// each rank 12 functions in three windows a minute, and a step a second.
func thousand(b *testing.B, s store.Store) {
	for minute := range int64(benchMinutes) {
		begin := firstBegin + minute*60e9
		for node := range benchAgents {
			batch := store.Batch{Session: fmt.Sprintf("node%d-%d", node, begin), Job: "synthetic", Host: fmt.Sprint("node", node),
				EventBytes: 50 << 20}
			for r := range benchRanks {
				rank := node*benchRanks + r
				p := pattern.Pattern{PID: int32(r + 1), Rank: int32(rank), ObservedNS: 20e9, Coverage: 0.97, Basis: pattern.Sampled, Resource: "cpu",
					Mu: 0.95}
				noise := 1 + 0.1*(float64(rank*7919%1000)/500-1)
				for window := range int64(3) {
					p.BeginNS, p.EndNS = begin+window*20e9, begin+(window+1)*20e9
					for f := range uint64(12) {
						p.Function, p.Class, p.Name, p.File = f+1, pattern.Python, fmt.Sprintf("function_%d (train.py)", f), "/job/train.py"
						p.Beta = 0.005 * noise
						switch {
						case f == 0:
							p.Class, p.Name, p.File, p.Beta = pattern.Loader, "Data.__getitem__ (data.py)", "/job/data.py", 0.02*noise
							if rank == benchSlow {
								p.Beta, p.Mu, p.Wait = 0.3, 0.05, "read"
							}
						case f == 1:
							p.Class, p.Name, p.Beta = pattern.Compute, "aten::linear", 0.6*noise
						}
						p.BetaLo, p.BetaHi = p.Beta-0.002, p.Beta+0.002
						batch.Patterns = append(batch.Patterns, p)
						p.Mu, p.Wait = 0.95, ""
					}
				}
				own := int64(600e6 * noise)
				if rank == benchSlow {
					own = 900e6
				}
				for n := range int64(60) {
					batch.Steps = append(batch.Steps, pattern.Step{PID: p.PID, Rank: p.Rank, Number: minute*60 + n, BeginNS: begin + n*1e9,
						PeriodNS: 1e9, WaitNS: 1e9 - own, LoadNS: 20e6})
				}
			}
			if _, err := store.Send(b.Context(), s, batch); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkReportOfAThousandAgents reads a store of 15,000 files, then of what a
// registrar made of them, and says how long that took.
func BenchmarkReportOfAThousandAgents(b *testing.B) {
	root := b.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		b.Fatal(err)
	}
	thousand(b, s)
	measure := func(name string) {
		files, bytes := 0.0, 0.0
		_ = filepath.WalkDir(filepath.Join(root, store.Version), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".parquet" {
				info, _ := entry.Info()
				files, bytes = files+1, bytes+float64(info.Size())
			}
			return nil
		})
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				db, err := dataset.Open(filepath.Join(root, store.Version))
				if err != nil {
					b.Fatal(err)
				}
				r, err := Build(b.Context(), db, Question{})
				if err != nil {
					b.Fatal(err)
				}
				db.Close()
				if len(r.Workers) != benchAgents*benchRanks || len(r.Findings) == 0 || r.Findings[0].Workers[0].Rank != benchSlow || r.WhatIf == nil {
					b.Fatalf("%d workers, %s", len(r.Workers), r.Verdict)
				}
			}
			b.ReportMetric(files, "files")
			b.ReportMetric(bytes/1e6, "MB")
		})
	}
	measure("as=sent")
	b.Run("merging", func(b *testing.B) {
		o := registrar.Options{Least: registrar.DefaultLeast, Target: registrar.DefaultTarget, Now: time.Now}
		for b.Loop() {
			for range 2 { // the second removes what the first has merged
				if _, err := registrar.Pass(b.Context(), s, o); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	measure("as=merged")
}
