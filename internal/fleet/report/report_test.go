package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/localise"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Four workers of one job on two hosts: steps of 100 ms, of which rank 2 needs 80 ms
// and the others 40 ms; the rest is waiting for it.
func job(t *testing.T, name string) *dataset.DB {
	t.Helper()
	return jobBeginning(t, name, 0)
}

// jobBeginning is job; the steps of rank 2 are said to begin later by after (ns).
func jobBeginning(t *testing.T, name string, after int64) *dataset.DB {
	t.Helper()
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, name, firstBegin, after)
	db, err := dataset.Open(filepath.Join(root, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

const firstBegin = int64(1_700_000_000e9)

// fill puts that job into a store.
func fill(t *testing.T, s store.Store, name string, begin, after int64) {
	t.Helper()
	for _, host := range []string{"a", "b"} {
		b := store.Batch{Session: "s-" + host, Job: name, Host: host, EventBytes: 1 << 20}
		for rank := range int32(4) {
			if (rank < 2) != (host == "a") {
				continue
			}
			own, first := int64(40e6), begin
			p := pattern.Pattern{Host: host, PID: 100 + rank, Rank: rank, BeginNS: begin, EndNS: begin + 20e9, ObservedNS: 20e9, Coverage: 0.97,
				Basis: pattern.Sampled, Resource: "cpu"}
			slow, wait := p, p
			slow.Function, slow.Class, slow.Name, slow.File, slow.Line = 1, pattern.Python, "\x1b[31mtokenize (tok.py)", "/tok.py", 12
			slow.Beta, slow.Mu = 0.02, 0.99
			wait.Function, wait.Class, wait.Name, wait.Beta = 2, pattern.Collective, "c10d::Work::wait", 0.6
			if rank == 2 {
				own, slow.Beta, wait.Beta = 80e6, 0.42, 0.2
				first += after
			}
			slow.BetaLo, slow.BetaHi, wait.BetaLo, wait.BetaHi = slow.Beta-.01, slow.Beta+.01, wait.Beta, wait.Beta
			b.Patterns = append(b.Patterns, slow, wait)
			for n := range int64(30) {
				load := int64(5e6)
				if rank == 3 {
					load = -1 // no probe
				}
				b.Steps = append(b.Steps, pattern.Step{PID: p.PID, Rank: rank, Number: n, LoadNS: load, BeginNS: first + n*100e6,
					PeriodNS: 100e6, WaitNS: 100e6 - own})
			}
		}
		if _, err := store.Send(t.Context(), s, b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSlowWorkerIsTheVerdict(t *testing.T) {
	const name = "llama/7b=x"
	r, err := Build(t.Context(), job(t, name), Question{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Job != name || len(r.Workers) != 4 || r.Workers[2].Host != "b" || r.Workers[2].WaitMS != 20 {
		t.Errorf("%q, %+v", r.Job, r.Workers)
	}
	if r.Workers[0].LoadMS == nil || math.Abs(*r.Workers[0].LoadMS-5) > 1e-9 || r.Workers[3].LoadMS != nil {
		t.Errorf("loading: %v, and of a loader that is not seen %v", r.Workers[0].LoadMS, r.Workers[3].LoadMS)
	}
	if len(r.Findings) == 0 || r.Findings[0].Workers[0].Rank != 2 || r.Findings[0].Line != 12 {
		t.Fatalf("%+v", r.Findings)
	}
	if !strings.HasPrefix(r.Verdict, "Rank 2 spends 42 %") || !strings.Contains(r.Verdict, "tok.py:12") {
		t.Error(r.Verdict)
	}
	// Steps of 80 + 20 ms; alike they take the mean of the own times, 50 ms, and the
	// transfer, which is what the last one waited: 20 ms.
	if a := r.WhatIf; a == nil || math.Abs(a.S-100.0/70) > 1e-6 || a.Workers[0].Rank != 2 {
		t.Errorf("what if: %+v", a)
	}
	if r.Transfer == nil || r.Transfer.EventBytes != 2<<20 || r.Transfer.Factor < 10 {
		t.Errorf("%+v", r.Transfer)
	}
}

// Agents of several versions send to one store: rows without the columns of a later one,
// and with columns that this one does not know, are read beside its own.
func TestAStoreHasFilesOfSeveralVersions(t *testing.T) {
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	const name = "j"
	fill(t, s, name, firstBegin, 0)
	type older struct {
		Session string `parquet:"session_id"`
		Job     string `parquet:"job"`
		Host    string `parquet:"host"`
		PID     int32  `parquet:"pid"`
		Rank    int32  `parquet:"rank"`
		Number  int64  `parquet:"number"`
		Begin   int64  `parquet:"begin_ns"`
		Period  int64  `parquet:"period_ns"`
		Wait    int64  `parquet:"wait_ns"`
	}
	type newer struct {
		store.StepRow
		Later string `parquet:"later"`
	}
	olds, news, patterns := []older{}, []newer{}, []store.PatternRow{}
	five := int32(5)
	for n := range int64(30) {
		begin := firstBegin + n*100e6
		olds = append(olds, older{"s-c", name, "c", 104, 4, n, begin, 100e6, 60e6})
		news = append(news, newer{store.StepRow{Session: "s-d", Job: name, Host: "d", PID: 105, Rank: &five, Number: n, Begin: begin,
			Period: 100e6, Wait: 60e6}, "x"})
	}
	for rank := int32(4); rank < 6; rank++ {
		for f, beta := range map[int64]float64{1: 0.02, 2: 0.6} {
			patterns = append(patterns, store.PatternRow{Session: "s", Job: name, Host: string(rune('c' + rank - 4)), PID: 100 + rank, Rank: &rank,
				Begin: firstBegin,
				End:   firstBegin + 20e9, Observed: 20e9, Coverage: 0.97, Function: f, Class: "python", Name: "f", Basis: "samples", Beta: beta,
				BetaLo: beta, BetaHi: beta, AnalysisID: store.AnalysisVersion})
		}
	}
	of := store.Partition{Table: "worker_step", Job: name, Host: "c", At: time.Unix(0, firstBegin)}
	for _, put := range []func() ([]byte, error){func() ([]byte, error) { return store.Encode(olds) },
		func() ([]byte, error) { return store.Encode(news) },
		func() ([]byte, error) { of.Table = "pattern"; return store.Encode(patterns) }} {
		content, err := put()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), of.Key(content), content); err != nil {
			t.Fatal(err)
		}
	}
	r := built(t, root)
	if len(r.Workers) != 6 || r.Findings[0].Workers[0].Rank != 2 || r.WhatIf == nil || len(r.WhatIf.Workers) != 6 {
		t.Fatalf("%+v, %+v, %+v", r.Workers, r.Findings, r.WhatIf)
	}
	for _, w := range r.Workers[4:] {
		if w.Steps != 30 || w.WaitMS != 60 || w.LoadMS != nil {
			t.Errorf("%+v", w)
		}
	}
}

// built is the report on a store.
func built(t *testing.T, root string) *Report {
	t.Helper()
	r, err := Build(t.Context(), opened(t, root), Question{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// opened is what a store's datasets say.
func opened(t *testing.T, root string) *dataset.DB {
	t.Helper()
	db, err := dataset.Open(filepath.Join(root, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Who asks for no job is told that there are others, and the table has the worker that
// is accused, however many there are.
func TestAReportSaysWhichJobsItLeavesOutAndNamesTheAccused(t *testing.T) {
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "one", firstBegin, 0)
	for n := range 7 {
		fill(t, s, fmt.Sprint("other", n), firstBegin-1e9, 0)
	}
	r := built(t, root)
	if r.Job != "one" || !slices.ContainsFunc(r.Notes, func(n string) bool {
		return strings.HasSuffix(n, "--job has the others: other0, other1, other2, other3, other4 and 2 more")
	}) {
		t.Errorf("%s: %q", r.Job, r.Notes)
	}
	if named, err := Build(t.Context(), opened(t, root), Question{Job: "other3"}); err != nil || len(named.Notes) != len(r.Notes)-1 {
		t.Errorf("%q, %v", named.Notes, err)
	}
	accused := localise.Worker{Host: "z", PID: 1, Rank: 99}
	for rank := range int32(60) {
		r.Workers = append(r.Workers, WorkerSummary{Worker: localise.Worker{Host: "y", PID: 200 + rank, Rank: 10 + rank}})
	}
	r.Workers = append(r.Workers, WorkerSummary{Worker: accused})
	r.Findings[0].Workers = []localise.Worker{accused}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if s := page.String(); !strings.Contains(s, "Drawn are 32 of 65 workers") || strings.Index(s, ">Findings<") > strings.Index(s,
		">Workers<") {
		t.Errorf("%s", s)
	}
	if !strings.Contains(text.String(), "\nrank 99 ") || !strings.Contains(text.String(), "33 workers more are not shown") {
		t.Errorf("%s", text.String())
	}
}

// A worker that loads before its anchor begins its steps half a period behind the
// others, some nearer to their next one: what it costs is the same.
func TestWhereAStepBeginsHasNoSayInItsCost(t *testing.T) {
	for _, after := range []int64{30e6, 50e6, 60e6} {
		r, err := Build(t.Context(), jobBeginning(t, "llama", after), Question{})
		if err != nil {
			t.Fatal(err)
		}
		a := r.WhatIf
		if a == nil {
			t.Fatalf("%d ms: not told: %v", after/1e6, r.Notes)
		}
		if math.Abs(a.S-100.0/70) > 1e-6 || math.Abs(a.ReplayedS-0.1) > 1e-6 {
			t.Errorf("%d ms: S %.3f, a step of %.1f ms", after/1e6, a.S, 1e3*a.ReplayedS)
		}
	}
}

// TestWhatIsSaidOfAFindingStandsBesideIt, of this function and job alone, in each format.
func TestWhatIsSaidOfAFindingStandsBesideIt(t *testing.T) {
	db := job(t, "llama")
	r, err := Build(t.Context(), db, Question{})
	if err != nil || len(r.Findings) < 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	s, err := store.NewDirectory(filepath.Dir(db.Root()))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	for n, row := range []store.FeedbackRow{
		r.Feedback(&r.Findings[0], "ann", true, "it sleeps\x1b[31m on purpose", now),
		r.Feedback(&r.Findings[0], "bob", false, "", now.Add(-time.Hour)),
		{Job: "another", At: 1, Author: "eve", Wrong: true, Kind: r.Findings[1].Kind, Class: r.Findings[1].Class,
			Function: r.Findings[1].Function},
	} {
		if err := store.PutFeedback(t.Context(), s, "h", row); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if err := store.PutFeedback(t.Context(), s, "h", r.Feedback(&r.Findings[0], "ann", true, strings.Repeat("x", 1001), now)); !errors.Is(err,
		store.ErrFeedback) {
		t.Errorf("a long text: %v", err)
	}
	again, err := dataset.Open(db.Root())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if r, err = Build(t.Context(), again, Question{}); err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0].Feedback; len(f) != 2 || !f[0].Wrong || f[0].Author != "ann" || f[1].Wrong || len(r.Findings[1].Feedback) != 0 {
		t.Errorf("%+v", r.Findings)
	}
	var text, page bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteHTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		if !strings.Contains(out, "said to be wrong 1 of 2 times") || strings.Contains(out, "\x1b[31m") {
			t.Errorf("%s", out)
		}
	}
}

func TestNoFormatActsOnATerminalOrAPage(t *testing.T) {
	r, err := Build(t.Context(), job(t, "<script>x\x1b]0;"), Question{})
	if err != nil {
		t.Fatal(err)
	}
	var text, html bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteHTML(&html)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(text.String(), 0x1b) || !strings.Contains(text.String(), "█") {
		t.Error(text.String())
	}
	if s := html.String(); strings.ContainsRune(s, 0x1b) || strings.Contains(s, "<script") || strings.Contains(s, "://") ||
		strings.Count(s, "<svg") != 2 {
		t.Errorf("a page of %d bytes acts, fetches or has no pictures", len(s))
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"verdict"`, `"findings"`, `"what_if"`, `"evidence_sql"`, `"peers_beta"`} {
		if !bytes.Contains(encoded, []byte(field)) {
			t.Errorf("no %s", field)
		}
	}
}

func TestEvidenceCanBeAskedAgain(t *testing.T) {
	db := job(t, "j")
	r, err := Build(t.Context(), db, Question{Job: "j"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		rows, err := db.Query(t.Context(), f.EvidenceSQL)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			n++
		}
		rows.Close()
		if n != 4 {
			t.Errorf("%s: %d rows", f.EvidenceSQL, n)
		}
	}
}

func TestAnUnknownJobIsAnError(t *testing.T) {
	if _, err := Build(t.Context(), job(t, "j"), Question{Job: "k"}); !errors.Is(err, ErrNoJob) {
		t.Error(err)
	}
}
