package report

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testbucket"
)

// Who asks for no job gets the same one of a bucket as of a directory, and the same note
// of the others: a recording of an hour that began first was seen last.
func TestAReportOfABucketChoosesAsThatOfADirectory(t *testing.T) {
	root := t.TempDir()
	directory, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range []struct {
		job        string
		begin, end int64 // s
	}{{"ended", -7200, -3600}, {"long/recording", -3000, 600}, {"short", 0, 60}, {"weeks ago", -14 * 86400, -14*86400 + 60}} {
		var all []pattern.Pattern
		for rank := range int32(3) {
			begin, end := firstBegin+j.begin*1e9, firstBegin+j.end*1e9
			all = append(all, pattern.Pattern{Host: "h", PID: 100 + rank, Rank: rank, BeginNS: begin, EndNS: end, ObservedNS: end - begin,
				Coverage: 1,
				Basis:    pattern.Sampled, Function: 1, Class: pattern.Python, Name: "f", Beta: 0.5})
		}
		if _, err := store.Send(t.Context(), directory, store.Batch{Session: j.job, Job: j.job, Host: "h", Patterns: all}); err != nil {
			t.Fatal(err)
		}
	}
	server := testbucket.Serve(t, t.TempDir())
	bucket, err := store.Create(server.Location())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := directory.List(t.Context(), store.Version)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		content := contents(t, directory, key)
		if err := bucket.Put(t.Context(), key, content); err != nil {
			t.Fatal(err)
		}
	}
	// Of what is damaged nothing is known, and it keeps nobody from a report.
	if err := bucket.Put(t.Context(), strings.TrimSuffix(keys[0], ".parquet")+"0.parquet", []byte("no Parquet at all")); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if err := store.Mirror(t.Context(), bucket.(*store.Bucket), "", time.Minute, to, nil); err != nil {
		t.Fatal(err)
	}
	want, got := built(t, root), built(t, to)
	if want.Job != "long/recording" || got.Job != want.Job || got.BeginNS != want.BeginNS || !slices.Equal(got.Notes, want.Notes) ||
		len(got.Workers) != 3 {
		t.Errorf("of a directory %s, %q; of a bucket %s, %q", want.Job, want.Notes, got.Job, got.Notes)
	}
	if !strings.Contains(strings.Join(got.Notes, " "), "short, ended, weeks ago") {
		t.Errorf("%q", got.Notes)
	}
}

func contents(t *testing.T, s store.Store, key string) []byte {
	t.Helper()
	f, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
