package agent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
)

// A job that is left alone is so for a day, under its name, and what is remembered is bounded.
func TestAJobIsLeftAloneForADay(t *testing.T) {
	s := newSupervisor(config.Defaults(), slog.New(slog.DiscardHandler))
	j := &supervised{job: jobs.Job{Name: "train", PIDs: []int{1, 2}}}
	s.jobs["train"] = j
	s.refuse(j, "it died")
	for range 2 { // found again and again, its processes settled
		s.update(t.Context(), jobs.Job{Name: "train", PIDs: []int{1, 2}})
	}
	if j.worker != nil || j.failure != "it died" {
		t.Errorf("%+v", j)
	}
	s.refused["train"] = refusedJob{"it died", time.Now().Add(-refusedFor)}
	if why := s.whyRefused("train"); why != "" || len(s.refused) != 0 {
		t.Errorf("after a day it is left alone: %s", why)
	}
	for i := range 2 * mostRefused {
		s.refuse(&supervised{job: jobs.Job{Name: time.Duration(i).String()}}, "it died")
	}
	if len(s.refused) != mostRefused {
		t.Errorf("%d are remembered", len(s.refused))
	}
}
