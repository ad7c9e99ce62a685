package jobs

import (
	"slices"
	"testing"
)

func TestAJobThatBeginsAgainUnderAnotherNameKeepsItsOwn(t *testing.T) {
	names := []Name{{`(llama)-\d+`, "$1"}, {`sweep-.*`, "sweep"}, {`.*-(gpu\d)-.*`, "on-${1}"}}
	look := func(found ...string) (called []string) {
		var all []Job
		for i, name := range found {
			all = append(all, Job{Name: name, PIDs: []int{i}})
		}
		for i, job := range Rename(names, all) {
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
