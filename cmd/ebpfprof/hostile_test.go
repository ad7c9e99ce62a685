package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// TestNoAnswerObeysANameOfATrace: whoever writes a trace chooses its names, and a terminal
// obeys some of them.
func TestNoAnswerObeysANameOfATrace(t *testing.T) {
	const evil = "\x1b]0;pwned\x07\x1b[31mX\n1. forged"
	var events []map[string]any
	add := func(category, name string, tid, from, lasts int, arguments map[string]any) {
		events = append(events, map[string]any{"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": from, "dur": lasts,
			"args": arguments})
	}
	for step := range 40 {
		from := 1000 + step*10_100
		add("user_annotation", fmt.Sprintf("ProfilerStep#%d", step), 1, from, 10_000, nil)
		add("python_function", "/home/me/"+evil+".py(17): f"+evil, 1, from+5, 9_000, map[string]any{"Python id": step + 1})
		add("cpu_op", "aten::contiguous", 1, from+10, 4_000, nil)
		add("cpu_op", "my::"+evil, 1, from+5_000, 3_000, nil)
		add("cuda_runtime", "cudaLaunchKernel", 1, from+5_100, 10, map[string]any{"correlation": step + 1})
		add("kernel", "k"+evil, 7, from+5_200, 2_000, map[string]any{"correlation": step + 1, "stream": 7, "device": 0})
	}
	content, err := json.Marshal(map[string]any{"traceEvents": events})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	trace, dataset := filepath.Join(dir, "trace.json"), filepath.Join(dir, "dataset")
	if err := os.WriteFile(trace, content, 0o600); err != nil {
		t.Fatal(err)
	}
	named := 0
	for i, line := range [][]string{
		{"import", trace, "--output", dataset}, {"report", dataset}, {"report", dataset, "--format", "markdown"}, {"report", dataset, "--format",
			"json"},
		{"findings", dataset}, {"findings", dataset, "--evidence"}, {"findings", dataset, "--json"}, {"tree", dataset},
		{"tree", dataset, "--bottom-up"},
		{"steps", dataset}, {"critical-path", dataset}, {"critical-path", dataset, "--annotation", "ProfilerStep"}, {"lint", dataset},
		{"views", dataset},
		{"views", dataset, "--view", "launches"}, {"search", dataset, "my::"}, {"diff", dataset, dataset}, {"annotate", dataset, evil},
		{"annotate", dataset},
		{"query", dataset, "SELECT name FROM span WHERE layer = 'op'"},
	} {
		out, complaint, code := said(t, line...)
		if code != cli.ExitOK {
			t.Errorf("%q: exit %d: %s", line[0], code, complaint)
		}
		if strings.ContainsAny(out+complaint, "\x1b\x07") || strings.Contains(out, "\n1. forged") {
			t.Errorf("%d, %q: %q", i, line, out)
		}
		if strings.Contains(out, "pwned") {
			named++
		}
	}
	if named < 10 {
		t.Errorf("%d answers have the name: this test asks too little", named)
	}
}
