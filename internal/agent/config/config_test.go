package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
)

func TestTheConfigurationThatIsDeployedIsTheDefault(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Read(testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), string(text)), nil)
	if err != nil {
		t.Fatal(err)
	}
	// With every key as the comments have it.
	all := strings.NewReplacer("\n#", "\n").Replace(string(text))
	var keys []string
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, " ") || !strings.Contains(line, ": ") || strings.HasPrefix(line, "key_file") || strings.Contains(line,
			"/metrics") {
			continue
		}
		keys = append(keys, line)
	}
	spelled, err := Read(testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), strings.Join(keys, "")), nil)
	if err != nil {
		t.Fatalf("%v of %q", err, keys)
	}
	if len(keys) < 14 {
		t.Errorf("only %d keys are described: %q", len(keys), keys)
	}
	plain.Libraries, spelled.Libraries = nil, nil
	if !equal(plain, spelled) {
		t.Errorf("%+v and %+v", plain, spelled)
	}
}

func equal(a, b Config) bool {
	a.Libraries, b.Libraries = nil, nil
	type comparable struct {
		store, spool, budget, listen, job          string
		spoolMB, rss                               int64
		every, settle, canary, window, cool, flush Duration
		jobs, steps, repeats, patience             int
		slower, blocked                            float64
	}
	of := func(c Config) comparable {
		return comparable{c.Store, c.Spool, c.Budget, c.Listen, c.Job, c.SpoolMB, c.MaxRSSMB, c.Every, c.Settle, c.Canary, c.Window, c.Cooldown,
			c.Flush,
			c.MaxJobs, c.StepsMean, c.Repeats, c.Patience, c.Slower, c.Blocked}
	}
	return of(a) == of(b)
}

func TestLaterFilesAndTheEnvironmentOverride(t *testing.T) {
	dir := t.TempDir()
	main := testfile.Write(t, filepath.Join(dir, "agent.yaml"), "store: /one\nwindow: 30s\nmax_jobs: 3\n")
	testfile.Write(t, filepath.Join(dir, "conf.d", "20-b.yaml"), "window: 50s\n")
	testfile.Write(t, filepath.Join(dir, "conf.d", "10-a.yaml"), "window: 40s\ncooldown: 1h\n")
	c, err := Read(main, []string{"EBPFPROF_AGENT_STORE=/two", "EBPFPROF_AGENT_MAX_JOBS=7", "EBPFPROF_AGENT_REDACT=true",
		"EBPFPROF_AGENT_HOST=node-7", "EBPFPROF_AGENT_RANKS=[0, 3]", "OTHER=1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Store != "/two" || time.Duration(c.Window) != 50*time.Second || time.Duration(c.Cooldown) != time.Hour || c.MaxJobs != 7 ||
		!c.Redact || !slices.Equal(c.Ranks, []int32{0, 3}) {
		t.Errorf("%+v", c)
	}
	if host, err := c.NodeName(); err != nil || host == "node-7" || host != c.Called("node-7") {
		t.Errorf("with redact: true the node is called %q, %v", host, err)
	}
	c.Redact = false
	if host, err := c.NodeName(); err != nil || host != "node-7" {
		t.Errorf("the node is called %q, %v", host, err)
	}
}

func TestABrokenConfigurationIsNamedWithItsLine(t *testing.T) {
	key := testfile.Write(t, filepath.Join(t.TempDir(), "key"), "0123456789abcdef0123456789abcdef\n")
	open := testfile.Write(t, filepath.Join(t.TempDir(), "open"), "0123456789abcdef0123456789abcdef\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                "names no store",
		"store: /s\nstroe: /x\n":          "line 2: field stroe is no key",
		"store: /s\nwindow: twenty\n":     "line 2: \"twenty\" is not a time",
		"store: /s\nwindow: -5s\n":        "is not a time",
		"store: /s\nbudget: lots\n":       "budget: \"lots\"",
		"store: /s\nlisten: nowhere\n":    "is no address",
		"store: /s\nkey_file: /missing\n": "key_file",
		"store: /s\nkey_file: " + open:    "chmod 600",
		"store: /s\nslower_than: 1\n":     "slower_than",
		"store: /s\nblocked_after: 1\n":   "blocked_after",
		"store: /s\nstep_repeats: 1000\n": "step_repeats",
		"store: /s\nonly: ['[']\n":        "is no pattern",
		"store: /s\nhost: 'a b'\n":        "host: \"a b\" is no name",
		"store: /s\nranks: [one]\n":       "line 2",
		"store: [":                        "yaml",
		"store: /s\nlibraries: []\n":      "no job would be found",
	} {
		_, err := Read(testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), text), nil)
		if err == nil || !errors.Is(err, ErrUnusable) || (want != "yaml" && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), "store: /s\nkey_file: "+key), nil); err != nil {
		t.Error(err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a file that does not exist was read")
	}
}

func TestOnlyTheJobsThatAreAskedForAreRecorded(t *testing.T) {
	for job, want := range map[string]bool{"llama-7b": true, "bert": false, "": false} {
		if c := (Config{Only: []string{"llama-*", "x"}}); c.Wants(job) != want {
			t.Errorf("%q", job)
		}
		if !(&Config{}).Wants(job) {
			t.Errorf("%q without patterns", job)
		}
	}
}
