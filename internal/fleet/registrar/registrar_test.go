package registrar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/manifest"
	"github.com/ebpfprof/ebpfprof/internal/fleet/iceberg"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testbucket"
)

// begin is the time of the first upload of the tests: an hour after midnight.
var begin = time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)

// send puts what a host sends of a minute: five patterns, three steps.
func send(t *testing.T, s store.Store, job, host string, minute int) {
	t.Helper()
	at := begin.Add(time.Duration(minute) * time.Minute).UnixNano()
	b := store.Batch{Session: fmt.Sprintf("%s-%d", host, minute), Job: job, Host: host}
	for n := range uint64(5) {
		b.Patterns = append(b.Patterns, pattern.Pattern{Rank: -1, BeginNS: at, EndNS: at + 60e9, Function: n, Name: fmt.Sprint("f", n)})
	}
	for n := range int64(3) {
		b.Steps = append(b.Steps, pattern.Step{Rank: 1, Number: n, BeginNS: at + n, PeriodNS: 5, LoadNS: -1})
	}
	if _, err := store.Send(t.Context(), s, b); err != nil {
		t.Fatal(err)
	}
}

// a night is what two hosts send of one job: few files, of each table more than Least.
func night(t *testing.T, s store.Store) {
	t.Helper()
	for minute := range 3 {
		for _, host := range []string{"a", "b"} {
			send(t, s, "j", host, minute)
		}
	}
}

// options are small, and of a time after the tests' uploads.
func options(after time.Duration) Options {
	return Options{Least: 4, Target: 1 << 20, Grace: time.Hour, Days: 90, Iceberg: true,
		Now: func() time.Time { return begin.Add(12*time.Hour + after) }}
}

// rowsIn are those of all tables, as a reader of the store has them, and how often.
func rowsIn(t *testing.T, directory string) map[string]int {
	t.Helper()
	list, err := dataset.List(filepath.Join(directory, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range list.Warnings {
		t.Error(warning)
	}
	all := map[string]int{}
	count[store.PatternRow](t, all, list.Files, "pattern")
	count[store.StepRow](t, all, list.Files, "worker_step")
	count[store.UploadRow](t, all, list.Files, "upload")
	return all
}

// count adds the rows of a table: as JSON, since they have pointers.
func count[T any](t *testing.T, all map[string]int, files map[string][]string, table string) {
	t.Helper()
	for _, file := range files[table] {
		rows, err := parquet.ReadFile[T](file)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			all[table+" "+string(text)]++
		}
	}
}

func sameRows(t *testing.T, when string, got, want map[string]int) {
	t.Helper()
	if !maps.Equal(got, want) || len(want) == 0 {
		missing, more := 0, 0
		for row, n := range want {
			missing += max(n-got[row], 0)
		}
		for row, n := range got {
			more += max(n-want[row], 0)
		}
		t.Errorf("%s: %d rows are missing, %d too many", when, missing, more)
	}
}

// place is where a store is: one to write into, and what readers of it have.
type place struct {
	s    Store
	rows func(t *testing.T) map[string]int
}

// places are a new directory and a new bucket each time.
func places(t *testing.T) map[string]func(t *testing.T) place {
	t.Helper()
	all := map[string]func(t *testing.T) place{"directory": func(t *testing.T) place {
		name := t.TempDir()
		s, err := store.NewDirectory(name)
		if err != nil {
			t.Fatal(err)
		}
		return place{s, func(t *testing.T) map[string]int { return rowsIn(t, name) }}
	}}
	n := 0
	var server *testbucket.Server
	all["bucket"] = func(t *testing.T) place {
		if server == nil {
			server = testbucket.Serve(t, t.TempDir())
		}
		n++
		s, err := store.Create(strings.Replace(server.Location(), "/fleet", fmt.Sprint("/fleet", n), 1))
		if err != nil {
			t.Fatal(err)
		}
		b := s.(*store.Bucket)
		return place{b, func(t *testing.T) map[string]int {
			t.Helper()
			to := filepath.Join(t.TempDir(), "copy")
			if err := store.Mirror(t.Context(), b, "j", time.Hour, to, nil); err != nil {
				t.Fatal(err)
			}
			return rowsIn(t, to)
		}}
	}
	return all
}

// icebergRows are how many rows each table of Iceberg has, in files that are there.
func icebergRows(t *testing.T, when string, at place) map[string]int64 {
	t.Helper()
	p := &pass{ctx: t.Context(), s: at.s}
	address, err := p.address()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for name := range tables {
		key := icebergKey + "/" + name
		table := &iceberg.Table{Store: at.s, Key: key, Location: address + "/" + key}
		files, err := table.Files(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for _, f := range files {
			content, err := p.read(strings.TrimPrefix(f.Path, address+"/"), mostFile)
			if err != nil || int64(len(content)) != f.Bytes {
				t.Errorf("%s: the table %s has a file that is not there: %v", when, name, err)
			}
			all[name] += f.Rows
		}
	}
	return all
}

// ofTables are rows by their table.
func ofTables(rows map[string]int) map[string]int64 {
	all := map[string]int64{}
	for row, n := range rows {
		table, _, _ := strings.Cut(row, " ")
		all[table] += int64(n)
	}
	return all
}

func parquets(t *testing.T, s store.Store) (names []string) {
	t.Helper()
	keys, err := s.List(t.Context(), store.Version+"/")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if path.Ext(key) == ".parquet" {
			names = append(names, key)
		}
	}
	return names
}

func onePass(t *testing.T, s Store, o Options) *Result {
	t.Helper()
	r, err := Pass(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestManySmallFilesBecomeFewWithTheSameRows(t *testing.T) {
	for name, where := range places(t) {
		t.Run(name, func(t *testing.T) {
			at := where(t)
			night(t, at.s)
			want := at.rows(t)
			dry := options(0)
			dry.DryRun = true
			if r := onePass(t, at.s, dry); r.Merged != 18 || len(parquets(t, at.s)) != 18 {
				t.Errorf("a dry run: %+v", r)
			}
			if r := onePass(t, at.s, options(0)); r.Merged != 18 || r.Into != 3 || r.Rows != 6*9 || r.Waiting != 18 || len(r.Notes) != 0 {
				t.Errorf("%+v", r)
			}
			sameRows(t, "merged", at.rows(t), want)
			if r := onePass(t, at.s, options(30*time.Minute)); r.Removed != 0 || r.Waiting != 18 || r.Merged != 0 {
				t.Errorf("within the grace: %+v", r)
			}
			if r := onePass(t, at.s, options(2*time.Hour)); r.Removed != 18 || r.Waiting != 0 || r.Merged != 0 {
				t.Errorf("after the grace: %+v", r)
			}
			if names := parquets(t, at.s); len(names) != 3 {
				t.Errorf("%q", names)
			}
			sameRows(t, "removed", at.rows(t), want)
			// What comes later is merged with it, and what is sent again does not count twice.
			night(t, at.s)
			sameRows(t, "sent again", at.rows(t), want)
			for minute := range 4 {
				send(t, at.s, "j", "c", 10+minute)
			}
			want = at.rows(t)
			if r := onePass(t, at.s, options(2*time.Hour)); r.Merged != 12+3 || r.Into != 3 || r.Removed != 18 {
				t.Errorf("the second time: %+v", r)
			}
			sameRows(t, "merged again", at.rows(t), want)
			onePass(t, at.s, options(4*time.Hour))
			sameRows(t, "removed again", at.rows(t), want)
			if names := parquets(t, at.s); len(names) != 3 {
				t.Errorf("%q", names)
			}
		})
	}
}

func TestDamagedAndNewerFilesStayAsTheyAre(t *testing.T) {
	at := places(t)["directory"](t)
	night(t, at.s)
	for minute := range 3 {
		send(t, at.s, "j", "c", 10+minute)
	}
	names := parquets(t, at.s)
	directory := at.s.String()
	cut := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "/pattern/") })
	if err := os.Truncate(filepath.Join(directory, names[cut]), 100); err != nil {
		t.Fatal(err)
	}
	type newer struct {
		store.UploadRow
		More int64 `parquet:"more"`
	}
	content, err := store.Encode([]newer{{More: 1}})
	if err != nil {
		t.Fatal(err)
	}
	key := store.Partition{Table: "upload", Job: "j", Host: "new", At: begin}.Key(content)
	foreign := "v1/upload/job=j/date=2026-11-20/host=x/by-hand.parquet"
	if err := errors.Join(at.s.Put(t.Context(), key, content), at.s.Put(t.Context(), foreign, content)); err != nil {
		t.Fatal(err)
	}
	r := onePass(t, at.s, options(0))
	if len(r.Notes) != 3 || r.Merged != 27-1 || r.Into != 3 {
		t.Errorf("%+v", r)
	}
	onePass(t, at.s, options(2*time.Hour))
	left := parquets(t, at.s)
	if len(left) != 6 || !slices.Contains(left, key) || !slices.Contains(left, foreign) || !slices.Contains(left, names[cut]) {
		t.Errorf("%q", left)
	}
}

func TestWhatIsTooOldIsRemoved(t *testing.T) {
	for name, where := range places(t) {
		t.Run(name, func(t *testing.T) {
			at := where(t)
			night(t, at.s)
			onePass(t, at.s, options(0))
			const day = 24 * 60
			send(t, at.s, "j", "a", 30*day)
			send(t, at.s, "j", "a", 91*day)
			row := store.FeedbackRow{Job: "j", At: begin.UnixNano()}
			if err := store.PutFeedback(t.Context(), at.s, "h", row); err != nil {
				t.Fatal(err)
			}
			request := "v1/request/job=j/date=2026-11-20/host=a/20261120T010000.000000000Z-0000000000000000.json"
			if err := at.s.Put(t.Context(), request, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			ever := options(200 * 24 * time.Hour)
			ever.Days = 0
			if r := onePass(t, at.s, ever); r.Expired != 1 { // the request
				t.Errorf("for ever: %+v", r)
			}
			late := options(300 * 24 * time.Hour)
			if r := onePass(t, at.s, late); r.Expired != 0 || len(r.Notes) != 1 {
				t.Errorf("a clock that is wrong: %+v", r)
			}
			now := options((91*24 + 12) * time.Hour)
			if r := onePass(t, at.s, now); r.Expired == 0 {
				t.Errorf("%+v", r)
			}
			left := parquets(t, at.s)
			if len(left) != 3+3+1 {
				t.Errorf("%q", left)
			}
			keys, err := at.s.List(t.Context(), "v1/"+manifest.Table+"/pattern")
			if err != nil || len(keys) != 0 {
				t.Errorf("%q, %v", keys, err)
			}
		})
	}
}

// A writer that was killed leaves its file without a name, which nobody reads.
func TestWhatAKilledWriterLeftIsRemovedAfterADay(t *testing.T) {
	dir := t.TempDir()
	s, err := store.NewDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	send(t, s, "j", "a", 0)
	keys, err := s.List(t.Context(), "v1/pattern")
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	beside := filepath.Dir(filepath.Join(dir, keys[0]))
	now := options(12 * time.Hour)
	old, fresh := filepath.Join(beside, ".part-0123456789abcdef"), filepath.Join(beside, ".part-fedcba9876543210")
	for path, age := range map[string]time.Duration{old: 25 * time.Hour, fresh: 23 * time.Hour} {
		at := now.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte("PAR1"), 0o644), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if r := onePass(t, s, now); r.Removed != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old one is there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}

func TestAServerThatTakesNoNoticeOfConditionsIsRefused(t *testing.T) {
	s, err := store.Create(testbucket.Serve(t, t.TempDir(), testbucket.Forgetful).Location())
	if err != nil {
		t.Fatal(err)
	}
	bucket := s.(*store.Bucket)
	night(t, bucket)
	before := parquets(t, bucket)
	for range 2 {
		if _, err := Pass(t.Context(), bucket, options(0)); !errors.Is(err, ErrUnsafe) {
			t.Error(err)
		}
	}
	if !slices.Equal(parquets(t, bucket), before) {
		t.Error("something was changed")
	}
}
