package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

var pageAddress = regexp.MustCompile(`http://([0-9.]+:\d+)/#token=([\w-]+)&live`)

// TestThePageOfARecordingThatIsMade: attach --serve, by somebody's sudo, shows the rows while they come, in a process of
// that user's. It outlives the recording and ends with the recorder.
func TestThePageOfARecordingThatIsMade(t *testing.T) {
	harness.Debian.Beside(t)
	const nobody = 65534
	dir, err := os.MkdirTemp("", "ebpfprof-page-test-")
	if err == nil {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	job := harness.StartJob(t, harness.Debian.Job("throwfork.py")...)
	a := harness.Start(t, "env", fmt.Sprintf("SUDO_UID=%d", nobody), fmt.Sprintf("SUDO_GID=%d", nobody), harness.Binary, "attach", "--serve",
		"--budget", "off", "--no-verdict", "--pid", fmt.Sprint(job.Process.Pid), "--output", filepath.Join(dir, "d"))
	a.Until(t, "the page's address", func(_ []string, errs string) bool { return pageAddress.MatchString(errs) })
	a.Until(t, "word that it is attached", func(_ []string, errs string) bool { return strings.Contains(errs, "attached in ") })
	job.GoOn(t)
	found := pageAddress.FindStringSubmatch(a.Transcript())
	ask := func(path string, into any) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+found[1]+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+found[2])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		return json.NewDecoder(answer.Body).Decode(into)
	}
	until := func(what, path string, into any, is func() bool) {
		t.Helper()
		for end := time.Now().Add(harness.Patience); ; time.Sleep(50 * time.Millisecond) {
			if err := ask(path, into); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, a.Transcript())
			}
			if is() {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s never came: %+v\n%s", what, into, a.Transcript())
			}
		}
	}
	var live struct {
		Calls     int64
		Recording bool
	}
	until("a call", "/api/live", &live, func() bool { return live.Recording && live.Calls > 0 })
	before := live.Calls
	until("another call", "/api/live", &live, func() bool { return live.Calls > before })
	var recorder struct{ Events uint64 }
	until("the recorder's word", "/api/recorder", &recorder, func() bool { return recorder.Events > 0 })
	page := pageOf(t, a.Process.Pid)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", page))
	if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", nobody)) {
		t.Errorf("the page's process: %v\n%s", err, status)
	}

	if err := a.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "word that the page stays", func(_ []string, errs string) bool { return strings.Contains(errs, "the page stays") })
	until("the end", "/api/live", &live, func() bool { return !live.Recording })
	if err := a.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, err := a.Wait(); code != 0 {
		t.Errorf("exit %d, %v\n%s", code, err, a.Transcript())
	}
	if err := ask("/api/live", &live); err == nil {
		t.Error("the page still answers")
	}
}

// pageOf is the process of a recorder's page.
func pageOf(t *testing.T, recorder int) string {
	t.Helper()
	children, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range children {
		line, _ := os.ReadFile(path)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		if strings.Contains(string(line), "\x00serve\x00--recorder\x00") && strings.Contains(string(stat), fmt.Sprintf("\nPPid:\t%d\n", recorder)) {
			return filepath.Base(filepath.Dir(path))
		}
	}
	t.Fatalf("recorder %d has no page", recorder)
	return ""
}
