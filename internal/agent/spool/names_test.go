package spool

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
)

// What goes by a job's name outlasts a run: the cool-down does.
func TestTheCoolDownGoesByTheNameThatAJobIsKnownBy(t *testing.T) {
	file := testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), "store: /s\nnames:\n  - match: (llama)-[0-9]+\n    name: $1\n")
	c, err := config.Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Spool = t.TempDir()
	now := time.Unix(1_800_000_000, 0)
	if err := KeepWindow(c.Spool, jobs.Rename(c.Names, []jobs.Job{{Name: "llama-41"}})[0].Name, now); err != nil {
		t.Fatal(err)
	}
	if at, err := LastWindow(c.Spool, jobs.Rename(c.Names, []jobs.Job{{Name: "llama-42"}})[0].Name, now.Add(time.Minute)); err != nil ||
		!at.Equal(now) {
		t.Errorf("%v, %v", at, err)
	}
	for _, bad := range []string{"- match: '('\n    name: x", "- match: x", "- name: x", "- match: x\n    name: y\n    more: z"} {
		file := testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), "store: /s\nnames:\n  "+bad+"\n")
		if _, err := config.Read(file, nil); !errors.Is(err, config.ErrUnusable) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
