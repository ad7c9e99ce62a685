package fleet

import (
	"os"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testbucket"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testspark"
)

// TestForeignReadersSparkReportsOfABucketWhatDuckDBDoes: the report as its user asks for
// it, and no copy of the bucket is left.
func TestForeignReadersSparkReportsOfABucketWhatDuckDBDoes(t *testing.T) {
	testspark.Use(t)
	server := testbucket.Serve(t, t.TempDir())
	bucket, err := store.Create(server.Location())
	if err != nil {
		t.Fatal(err)
	}
	var all []pattern.Pattern
	for rank := range int32(3) {
		beta := 0.02
		if rank == 1 {
			beta = 0.5
		}
		const begin = 1_790_000_000_000_000_000
		all = append(all, pattern.Pattern{Host: "h", PID: 100 + rank, Rank: rank, BeginNS: begin, EndNS: begin + 20e9, ObservedNS: 20e9,
			Coverage: 1,
			Basis:    pattern.Sampled, Function: 1, Class: pattern.Python, Name: "tokenize", Resource: "cpu", Beta: beta, BetaLo: beta - 0.01,
			BetaHi: beta + 0.01, Mu: 0.9})
	}
	if _, err := store.Send(t.Context(), bucket, store.Batch{Session: "s", Job: "llama", Host: "h", Patterns: all}); err != nil {
		t.Fatal(err)
	}
	copies := t.TempDir()
	t.Setenv("TMPDIR", copies)
	said := map[string]string{}
	for _, engine := range []string{"duckdb", "spark"} {
		out, warnings, code, err := testcommand.Run(Command(), "report", "--json", "--engine", engine, server.Location())
		if err != nil || code != 0 || !strings.Contains(out, "tokenize") {
			t.Fatalf("%s: %d, %v, %s\n%s", engine, code, err, warnings, out)
		}
		said[engine] = out
		if left, err := os.ReadDir(copies); err != nil || len(left) > 0 {
			t.Errorf("%s has left %v (%v)", engine, left, err)
		}
	}
	if said["spark"] != said["duckdb"] {
		t.Errorf("Spark says\n%s\nDuckDB\n%s", said["spark"], said["duckdb"])
	}
}
