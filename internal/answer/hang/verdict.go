package hang

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of verdicts, each of what a report begins with.
const (
	KindMissing  = "missing"  // a rank has not come to the collective in which others wait
	KindStopped  = "stopped"  // a rank is stopped by a signal or a debugger, and others wait for it
	KindMismatch = "mismatch" // ranks have asked for different collectives under one number
	KindComplete = "complete" // every rank has come, and none can end it
	KindAbsent   = "absent"   // ranks wait, and all that have not come are in no recording given
	KindUnseen   = "unseen"   // ranks wait in a collective of which nothing was recorded
	KindIdle     = "idle"     // no rank waits in a collective
)

// Kinds lists them.
func Kinds() []string {
	return []string{KindMissing, KindStopped, KindMismatch, KindComplete, KindAbsent, KindUnseen, KindIdle}
}

// Verdict is what keeps a job from going on that is known to be blocked.
type Verdict struct {
	Kind     string  `json:"kind"`
	Sentence string  `json:"sentence"`
	Report   *Report `json:"report"`
	// Idle are the processes of the recordings, where none of them waits in a collective:
	// ranks of other nodes may wait for them.
	Idle []Process `json:"idle,omitempty"`
}

// Judge says what keeps a job from going on, by recordings of its nodes.
func Judge(all ...*Recording) Verdict {
	v := Verdict{Report: Analyse(all...)}
	switch {
	case len(v.Report.Groups) > 0:
		g := &v.Report.Groups[0]
		v.Kind, v.Sentence = g.kind(), fmt.Sprintf("of %d ranks %s", g.Ranks, g.sentence())
	case v.Report.Unseen != nil:
		v.Kind, v.Sentence = KindUnseen, v.Report.Unseen.sentence()
	default:
		for _, r := range all {
			v.Idle = append(v.Idle, r.idle()...)
		}
		v.Kind, v.Sentence = KindIdle, idleSentence(v.Idle)
	}
	return v
}

func (g *Group) kind() string {
	known, stopped := 0, 0
	for _, m := range g.Missing {
		if m.PID != nil {
			known++
		}
		if m.Stopped != "" {
			stopped++
		}
	}
	switch {
	case g.Mismatch:
		return KindMismatch
	case len(g.Missing) == 0:
		return KindComplete
	case stopped > 0:
		return KindStopped
	case known == 0:
		return KindAbsent
	}
	return KindMissing
}

// idle are the processes of a recording of which none waits.
func (r *Recording) idle() (all []Process) {
	for _, known := range r.Processes {
		p := Process{Host: r.Host, PID: known.PID, Rank: known.Rank, Threads: r.Threads[known.PID]}
		p.Stopped = haltOf(p.Threads)
		if len(p.Threads) > 0 && p.Threads[0].Main {
			if p.Place = p.Threads[0].place(); p.Threads[0].Still != nil {
				p.Seconds = *p.Threads[0].Still
			}
		}
		if p.Place == "" && r.LastPlace != nil {
			p.Place = r.LastPlace(known.PID)
		}
		all = append(all, p)
	}
	return all
}

// named is how many processes or ranks a sentence names.
const named = 4

func idleSentence(all []Process) string {
	text := "no rank waits in a collective"
	for i := range all {
		if i == named {
			return fmt.Sprintf("%s; %d more", text, len(all)-i)
		}
		p := &all[i]
		text += "; " + p.name()
		switch {
		case p.Stopped != "":
			text += " is " + p.Stopped
		case p.Seconds > 0:
			text += fmt.Sprintf(" has stood still for %.1f s", p.Seconds)
		default:
			text += " runs"
		}
		if p.Place != "" {
			text += " at " + p.Place
		}
	}
	return text
}

// absence says who of a group has not come, and where they are.
func (g *Group) absence() string {
	var here []string
	elsewhere := 0
	for i := range g.Missing {
		m := &g.Missing[i]
		switch {
		case m.PID == nil:
			elsewhere++
			continue
		case len(here) == named:
			here = append(here, "…")
			continue
		case len(here) > named:
			continue
		}
		here = append(here, m.absence())
	}
	switch {
	case len(here) == 0 && elsewhere == 1:
		return fmt.Sprintf("rank %d has not come, or is in no recording given", g.Missing[0].Rank)
	case len(here) == 0:
		return fmt.Sprintf("%d ranks have not come, or are in no recording given", elsewhere)
	}
	text := here[0]
	if len(here) > 1 {
		text = fmt.Sprintf("%d ranks have not come: %s", len(g.Missing)-elsewhere, strings.Join(here, ", "))
	} else if m := g.known(); m.Stopped == "" {
		text = fmt.Sprintf("rank %d has not come", m.Rank)
		if where := m.where(); where != "" {
			text += " (" + where + ")"
		}
	}
	if elsewhere > 0 {
		text += fmt.Sprintf("; %d more are in no recording given", elsewhere)
	}
	return text
}

// known is the first that is missing of which something is known.
func (g *Group) known() *Rank {
	return &g.Missing[slices.IndexFunc(g.Missing, func(m Rank) bool { return m.PID != nil })]
}

func (r *Rank) absence() string {
	text := fmt.Sprintf("rank %d", r.Rank)
	if r.Stopped != "" {
		text += " is " + r.Stopped
	}
	if where := r.where(); where != "" {
		text += " (" + where + ")"
	}
	return text
}

// where says in a few words where a rank is that is missing.
func (r *Rank) where() string {
	switch {
	case r.Ended:
		return "its process has ended"
	case r.Place == "":
		return ""
	case r.Sampled:
		return "last sampled at " + r.Place
	}
	return "at " + r.Place
}
