package agent

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestAJobThatBeginsAgainUnderAnotherNameKeepsItsOwn(t *testing.T) {
	names := []Name{{`(llama)-\d+`, "$1"}, {`sweep-.*`, "sweep"}, {`.*-(gpu\d)-.*`, "on-${1}"}}
	look := func(found ...string) (called []string) {
		var jobs []Job
		for i, name := range found {
			jobs = append(jobs, Job{name, []int{i}})
		}
		for i, job := range rename(names, jobs) {
			if job.PIDs[0] != i {
				t.Errorf("%v: their processes are mixed up", found)
			}
			called = append(called, job.Name)
		}
		return called
	}
	for _, c := range []struct{ found, called []string }{
		{[]string{"llama-41"}, []string{"llama"}},
		{[]string{"llama-42"}, []string{"llama"}}, // it began again
		{[]string{"llama-41", "llama-42"}, []string{"llama", "llama-42"}},
		{[]string{"llama-41", "llama"}, []string{"llama-41", "llama"}}, // one that is called so by itself
		{[]string{"xllama-41", "llama-41x", "llama-41\n"}, []string{"xllama-41", "llama-41x", "llama-41\n"}},
		{[]string{"a-gpu3-b", "sweep-1", "other"}, []string{"on-gpu3", "sweep", "other"}},
	} {
		if got := look(c.found...); !slices.Equal(got, c.called) {
			t.Errorf("%q are called %q, want %q", c.found, got, c.called)
		}
	}
}

// What goes by a job's name outlasts a run: the cool-down does.
func TestTheCoolDownGoesByTheNameThatAJobIsKnownBy(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.yaml"), "store: /s\nnames:\n  - match: (llama)-[0-9]+\n    name: $1\n")
	c, err := ReadConfig(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Spool = t.TempDir()
	now := time.Unix(1_800_000_000, 0)
	if err := keepWindow(c.Spool, rename(c.Names, []Job{{Name: "llama-41"}})[0].Name, now); err != nil {
		t.Fatal(err)
	}
	if at, err := lastWindow(c.Spool, rename(c.Names, []Job{{Name: "llama-42"}})[0].Name, now.Add(time.Minute)); err != nil || !at.Equal(now) {
		t.Errorf("%v, %v", at, err)
	}
	for _, bad := range []string{"- match: '('\n    name: x", "- match: x", "- name: x", "- match: x\n    name: y\n    more: z"} {
		file := write(t, filepath.Join(t.TempDir(), "agent.yaml"), "store: /s\nnames:\n  "+bad+"\n")
		if _, err := ReadConfig(file, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
