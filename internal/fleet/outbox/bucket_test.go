package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testbucket"
)

// opened is the store in a server's bucket.
func opened(t *testing.T, s *testbucket.Server) store.Store {
	t.Helper()
	b, err := store.Create(s.Location())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read is all that a store has, by key.
func read(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	keys, err := s.List(t.Context(), store.Version+"/")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, key := range keys {
		r, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		all[key] = string(content)
	}
	return all
}

func equal(t *testing.T, got, want map[string]string) {
	t.Helper()
	for key, content := range want {
		if got[key] != content {
			t.Errorf("%s: %d bytes, want %d", key, len(got[key]), len(content))
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

// What a directory has, a bucket has, and a report's copy of it.
func TestABucketIsAStoreLikeADirectory(t *testing.T) {
	files := open(t)
	for second := range int64(3) {
		recording(t, files, second)
	}
	want := read(t, files)
	s := testbucket.Serve(t, t.TempDir())
	if _, err := store.Open(t.Context(), s.Location()); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("an empty bucket: %v", err)
	}
	bucket := opened(t, s)
	for range 2 { // what is put twice is there once
		for key, content := range want {
			if err := bucket.Put(t.Context(), key, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	equal(t, read(t, bucket), want)
	if _, err := bucket.Get(t.Context(), store.Version+"/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that is not there: %v", err)
	}
	again, err := store.Open(t.Context(), s.Location())
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"", "j"} {
		to, last := filepath.Join(t.TempDir(), "copy"), 0
		if err := store.Mirror(t.Context(), again.(*store.Bucket), job, time.Minute, to, func(done, of int) { last = of - done }); err != nil ||
			last != 0 {
			t.Fatalf("%v, %d left", err, last)
		}
		copied, err := store.OpenDirectory(to)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, read(t, copied), want)
	}
}

// versitygw refuses a key that is taken before it has read the object, and closes the
// connection: of half a megabyte a third of the answers are cut off.
func TestALargeObjectWhoseKeyIsTaken(t *testing.T) {
	bucket := opened(t, testbucket.Serve(t, t.TempDir())).(*store.Bucket)
	key, content := store.Version+"/k.parquet", make([]byte, 500_000)
	if err := bucket.Create(t.Context(), key, content); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				if err := bucket.Create(t.Context(), key, content); !errors.Is(err, store.ErrTaken) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Of many jobs and days a report's copy has the job that was asked for, or the one that
// was seen last, from a day before on.
func TestACopyHasTheJobAndTheDaysThatAreAskedFor(t *testing.T) {
	const day = 24 * 3600
	all := map[string]map[int64]bool{"old": {0: true}, "asked": {0: true, 5 * day: true, 6 * day: true}, "last/é": {7 * day: true}}
	s := testbucket.Serve(t, t.TempDir())
	bucket := opened(t, s)
	for job, seconds := range all {
		for second := range seconds {
			b := store.Batch{Session: fmt.Sprint(job, second), Job: job, Host: "h", Steps: []pattern.Step{{PeriodNS: 1}},
				Patterns: []pattern.Pattern{{BeginNS: time.Unix(1_700_000_000+second, 0).UnixNano(), Name: "f"}}}
			if _, err := store.Send(t.Context(), bucket, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		job   string
		since time.Duration
		files int
		// of the others a file each
	}{{"asked", time.Minute, 6}, {"asked", 6 * 24 * time.Hour, 9}, {"old", time.Minute, 3}, {"", time.Minute, 5}} {
		to := filepath.Join(t.TempDir(), "copy")
		if err := store.Mirror(t.Context(), bucket.(*store.Bucket), c.job, c.since, to, nil); err != nil {
			t.Fatal(err)
		}
		copied, err := store.OpenDirectory(to)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := copied.List(t.Context(), store.Version)
		wanted := "job=" + c.job + "/"
		if c.job == "" {
			wanted = "job=last%2F%C3%A9/"
		}
		if err != nil || len(keys) != c.files || !strings.Contains(strings.Join(keys, " "), wanted) {
			t.Errorf("job %q since %s: %q, %v", c.job, c.since, keys, err)
		}
	}
	if err := store.Mirror(t.Context(), bucket.(*store.Bucket), "none", time.Minute, t.TempDir(), nil); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("a job that is not there: %v", err)
	}
}

// The server is killed while files are sent, over and over: what the outbox had is in
// the bucket at the end, once and whole.
func TestAServerThatIsKilledLosesNothing(t *testing.T) {
	files := open(t)
	for second := range int64(40) {
		recording(t, files, second)
	}
	want := read(t, files)
	s := testbucket.Serve(t, t.TempDir())
	sender := NewSender(files, opened(t, s), limit(1<<30))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil && sender.State().Sent < int64(len(want)) {
			_ = sender.Pass(ctx)
		}
	}()
	kills := 0
	for sent := int64(0); kills < 5; {
		if now := sender.State().Sent; now > sent+10 || now >= int64(len(want)) {
			sent = now
			s.Kill()
			kills++
			s.Start(t)
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Errorf("not all was sent: %+v", sender.State())
	}
	stop()
	<-done
	equal(t, read(t, opened(t, s)), want)
	if st := sender.State(); st.Dropped != 0 || st.Files != 0 {
		t.Errorf("%+v", st)
	}
}

// A store that refuses, that has no such bucket, that is full or that does not answer
// loses nothing, and the error says what to do.
func TestWhatABucketDoesNotTakeWaits(t *testing.T) {
	s := testbucket.Serve(t, t.TempDir())
	for _, c := range []struct {
		name, says string
		location   func(t *testing.T) string
	}{
		{"wrong credentials", "refuses the credentials", func(t *testing.T) string {
			t.Setenv("AWS_SECRET_ACCESS_KEY", "another secret")
			return s.Location()
		}},
		{"no bucket", "has no bucket \"none\": make it first", func(*testing.T) string {
			return strings.Replace(s.Location(), "profiles",
				"none", 1)
		}},
		{"nobody there", "does not answer", func(t *testing.T) string {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer free.Close()
			return strings.Replace(s.Location(), s.Address, free.Addr().String(), 1)
		}},
		{"full", "writing to the store", func(t *testing.T) string { return testbucket.Serve(t, small(t)).Location() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := open(t)
			recording(t, files, 1)
			want := read(t, files)
			to, err := store.Create(c.location(t))
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "full" {
				fill(t, to)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err = NewSender(files, to, limit(1<<20)).Pass(ctx)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), testbucket.Secret) || strings.Contains(err.Error(), "X-Amz")) {
				t.Errorf("the error tells a secret: %v", err)
			}
			equal(t, read(t, files), want)
		})
	}
}

// small is a directory on a file system with room for next to nothing.
func small(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a small file system takes root")
	}
	directory := t.TempDir()
	if err := unix.Mount("none", directory, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no small file system here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(directory, unix.MNT_DETACH) })
	return directory
}

func fill(t *testing.T, to store.Store) {
	t.Helper()
	for n := 0; n < 1000; n++ {
		if to.Put(t.Context(), fmt.Sprintf("v1/fill/%d", n), make([]byte, 8<<10)) != nil {
			return
		}
	}
	t.Fatal("the bucket does not get full")
}
