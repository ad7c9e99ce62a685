package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Jobs, hosts and functions are called what a job likes.
var hostile = []string{
	"a\x1b[31m\x07b", "../../etc/passwd", "a\nb\r\n", strings.Repeat("long", 1<<20/4), "bytes \xff\xfe", `"><script>alert(1)</script>`,
	"'; DROP TABLE pattern; --", "\u202egnp.exe", "*?[", "%00", "",
}

// hostileStore has two workers of each job of such a name, on hosts and in functions of it.
func hostileStore(t *testing.T, root string, names ...string) {
	t.Helper()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	for k, name := range names {
		begin := firstBegin + int64(k)*1e9
		for rank := range int32(3) {
			p := pattern.Pattern{Host: name, PID: 100 + rank, Rank: rank, BeginNS: begin, EndNS: begin + 20e9, ObservedNS: 20e9, Coverage: 0.97,
				Basis: pattern.Sampled, Resource: "cpu", Function: 1, Class: pattern.Python, Name: name, File: name, Stack: name, Wait: name,
				Line: 3, Beta: 0.02 + 0.2*float64(rank), Mu: 0.9}
			p.BetaLo, p.BetaHi = p.Beta-.01, p.Beta+.01
			b := store.Batch{Session: name, Job: name, Host: name, Tool: name, Patterns: []pattern.Pattern{p}}
			for n := range int64(30) {
				b.Steps = append(b.Steps, pattern.Step{PID: p.PID, Rank: rank, Number: n, BeginNS: begin + n*100e6, PeriodNS: 100e6, WaitNS: 10e6})
			}
			if _, err := store.Send(t.Context(), s, b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHostileNamesAreInertAndBounded(t *testing.T) {
	for _, name := range hostile {
		root := t.TempDir()
		hostileStore(t, root, name)
		r, err := Build(t.Context(), opened(t, root), Question{})
		if err != nil {
			t.Errorf("%.40q: %v", name, err)
			continue
		}
		inert(t, fmt.Sprintf("%.40q", name), r)
		if len(r.Findings) == 0 || len(r.Workers) != 3 {
			t.Errorf("%.40q: %d workers, %d findings", name, len(r.Workers), len(r.Findings))
		}
	}
}

// One job with such a name does not keep anybody from reading the others of its store.
func TestJobsOfHostileNamesLieBesideOthers(t *testing.T) {
	root := t.TempDir()
	hostileStore(t, root, append([]string{"train"}, hostile...)...)
	db := opened(t, root)
	jobs, err := Jobs(t.Context(), db)
	if err != nil || len(jobs) != 1+len(hostile) {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	for _, job := range append([]string{"", "train"}, jobs...) {
		r, err := Build(t.Context(), db, Question{Job: job})
		if err != nil {
			t.Fatalf("%.40q: %v", job, err)
		}
		inert(t, fmt.Sprintf("%.40q of many", job), r)
	}
}

func inert(t *testing.T, what string, r *Report) {
	t.Helper()
	var text, html bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for format, b := range map[string][]byte{"text": text.Bytes(), "HTML": html.Bytes(), "JSON": answer} {
		if !utf8.Valid(b) || len(b) > 4<<20 {
			t.Errorf("%s as %s: %d bytes, UTF-8: %v", what, format, len(b), utf8.Valid(b))
		}
		for _, c := range string(b) {
			if c != '\n' && unicode.IsControl(c) || c == 0x202e && format != "JSON" {
				t.Errorf("%s as %s has %U", what, format, c)
				break
			}
		}
	}
	if strings.Contains(html.String(), "<script") || strings.Contains(html.String(), `"><`+"script") {
		t.Errorf("%s: a script in the page", what)
	}
}
