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
	s.refused["train"] = refusedJob{why: "it died", from: time.Now().Add(-refusedFor)}
	if why := s.whyRefused("train"); why != "" || len(s.refused) != 0 {
		t.Errorf("after a day it is left alone: %s", why)
	}
	for i := range 2 * mostRefused {
		s.refuse(&supervised{job: jobs.Job{Name: time.Duration(i).String(), User: uint32(i % 20)}}, "it died")
	}
	if len(s.refused) != mostRefused {
		t.Errorf("%d are remembered", len(s.refused))
	}
}

// A claimant's canary has its own job left alone, and not the one whose name it claims; its
// refusals push out none of another user's.
func TestAClaimantIsLeftAloneAndNotTheJobThatItClaims(t *testing.T) {
	s := newSupervisor(config.Defaults(), slog.New(slog.DiscardHandler))
	roots, claimed := jobs.Job{Name: "77", PIDs: []int{1}}, jobs.Job{Name: "77", PIDs: []int{2}, User: 65534}
	s.refuse(&supervised{job: claimed}, "it died")
	if why := s.whyRefused(roots.Identity()); why != "" {
		t.Errorf("root's job is left alone: %s", why)
	}
	if why := s.whyRefused(claimed.Identity()); why == "" {
		t.Error("the claimant's is not")
	}
	s.refuse(&supervised{job: roots}, "it died")
	for i := range 3 * mostRefused {
		s.refuse(&supervised{job: jobs.Job{Name: time.Duration(i).String(), User: 65534}}, "it died")
	}
	if s.whyRefused(roots.Identity()) == "" || len(s.refused) > mostRefusedOfUser+1 {
		t.Errorf("of %d that are remembered root's is none", len(s.refused))
	}
}

// One user's jobs leave room for another's.
func TestACrowdOfOneUserTurnsAwayNobodyElse(t *testing.T) {
	c := config.Defaults()
	c.MaxJobs = 16
	s := newSupervisor(c, slog.New(slog.DiscardHandler))
	for i := range 40 {
		s.update(t.Context(), jobs.Job{Name: time.Duration(i).String(), PIDs: []int{i}, User: 65534})
	}
	s.update(t.Context(), jobs.Job{Name: "77", PIDs: []int{100}})
	if s.jobs["77"] == nil || len(s.jobs) != 13 || s.crowded != 28 {
		t.Errorf("%d jobs, %d turned away; root's is there: %t", len(s.jobs), s.crowded, s.jobs["77"] != nil)
	}
	c.MaxJobs = 1
	s = newSupervisor(c, slog.New(slog.DiscardHandler))
	s.update(t.Context(), jobs.Job{Name: "alone", PIDs: []int{1}})
	if len(s.jobs) != 1 {
		t.Error("the only place is nobody's")
	}
}
