package report

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/registrar"
	"github.com/ebpfprof/ebpfprof/internal/fleet/spark"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testspark"
)

// TestForeignReadersSparkReportsWhatDuckDBDoes, on this machine and with a cluster's master and
// worker: row for row what the report's queries
// read, and the report, of a store with two jobs, names that act, a row of feedback, and
// files that were merged beside those that they were merged of.
func TestForeignReadersSparkReportsWhatDuckDBDoes(t *testing.T) {
	testspark.Use(t)
	const name = "größe/7b=x '\"\\ 007"
	root := filepath.Dir(job(t, name).Root())
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "007", firstBegin+3600e9, 0)
	o := registrar.Options{Least: 2, Target: 1 << 20, Grace: time.Hour, Now: time.Now}
	if r, err := registrar.Pass(t.Context(), s, o); err != nil || r.Merged == 0 || r.Waiting == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	open := func() *dataset.DB {
		db, err := dataset.Open(filepath.Join(root, store.Version))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	first, err := Build(t.Context(), open(), Question{Job: name})
	if err != nil || len(first.Findings) == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := store.PutFeedback(t.Context(), s, "h", first.Feedback(&first.Findings[0], "ann", true, "no\n\"way\"", time.Unix(1_700_000_000,
		5))); err != nil {
		t.Fatal(err)
	}
	block(t, s, name, firstBegin+20e9)
	fails(t, s, name, firstBegin+21e9)
	db := open()
	files, err := dataset.List(db.Root())
	if err != nil {
		t.Fatal(err)
	}
	for what, master := range map[string]string{"this machine": "local[1]", "a cluster": testspark.Cluster(t)} {
		t.Run(what, func(t *testing.T) {
			session, err := spark.Open(t.Context(), master, files.Files)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := session.Close(); err != nil {
					t.Error(err)
				}
			}()
			sameAnswers(t, db, session, name)
		})
	}
}

// sameAnswers asks DuckDB and Spark the same.
func sameAnswers(t *testing.T, db *dataset.DB, session *spark.Session, name string) {
	t.Helper()
	for _, q := range []Question{{}, {Job: name, Since: time.Hour}} {
		want, err := Build(t.Context(), db, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Build(t.Context(), session, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.table) != 8 || len(want.steps) != 4 || q.Job == name && (len(want.Hangs) != 1 || len(want.Failures) != 2) {
			t.Errorf("%+v: %d patterns, %d workers, %d hangs, %d failures", q, len(want.table), len(want.steps), len(want.Hangs), len(want.Failures))
		}
		if !reflect.DeepEqual(got.table, want.table) {
			t.Errorf("%+v: patterns\n got %+v\nwant %+v", q, got.table, want.table)
		}
		if !reflect.DeepEqual(got.steps, want.steps) {
			t.Errorf("%+v: steps\n got %+v\nwant %+v", q, got.steps, want.steps)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\n got %+v\nwant %+v", q, got, want)
		}
	}
	if _, err := Build(t.Context(), session, Question{Job: "none"}); err == nil {
		t.Error("a job that is not there was reported")
	}
	for _, q := range []string{"SELECT * FROM nothing", "SELECT"} {
		if err := session.Row(t.Context(), q, nil); err == nil {
			t.Errorf("%s was answered", q)
		}
	}
	wantJobs, err := Jobs(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if jobs, err := Jobs(t.Context(), session); err != nil || !reflect.DeepEqual(jobs, wantJobs) {
		t.Errorf("%q, want %q: %v", jobs, wantJobs, err)
	}
}
