package hang

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	switch {
	case len(r.Groups) > 0 || r.Unseen != nil:
		r.write(&b)
	case len(r.Standing) > 0:
		b.WriteString("no collective of torch.distributed was open, but these processes stood still when the dataset was written last:\n")
		return errors.Join(writeAll(w, &b), r.WriteStanding(w))
	default:
		b.WriteString("nothing waits: no collective of torch.distributed was open when the dataset was written last, and no main thread " +
			"stood still\n")
	}
	return writeAll(w, &b)
}

func writeAll(w io.Writer, b *strings.Builder) error {
	_, err := io.WriteString(w, printable.Lines(b.String()))
	return err
}

func (r *Report) write(b *strings.Builder) {
	on := r.hosts()
	for i := range r.Groups {
		g := &r.Groups[i]
		name := g.Name
		if name == "" {
			name = "of all ranks"
		}
		fmt.Fprintf(b, "group %s, %d ranks: %s\n", name, g.Ranks, g.sentence())
		for _, m := range g.Missing {
			fmt.Fprintf(b, "  missing  rank %-4d %s%s\n", m.Rank, on(m.Host), m.missing())
		}
		for _, m := range g.Waiting {
			fmt.Fprintf(b, "  waits    rank %-4d %spid %-8d %s  %s\n", m.Rank, on(m.Host), *m.PID, m.Collective, m.Place)
		}
		writeStacks(b, stood(g.Missing, "missing"), stood(g.Waiting, "waits"))
	}
	if r.Unseen != nil {
		r.Unseen.write(b, on)
	}
}

// hosts names the host of a rank, where they are of several.
func (r *Report) hosts() func(host string) string {
	var first string
	several := false
	see := func(host string) {
		if first == "" {
			first = host
		}
		several = several || host != "" && host != first
	}
	for i := range r.Groups {
		for _, rank := range slices.Concat(r.Groups[i].Missing, r.Groups[i].Waiting) {
			see(rank.Host)
		}
	}
	if r.Unseen != nil {
		for _, p := range slices.Concat(r.Unseen.Others, r.Unseen.Waiting) {
			see(p.Host)
		}
	}
	return func(host string) string {
		if !several || host == "" {
			return ""
		}
		return printable.Short(host) + "  "
	}
}

// Sentences are the verdicts on what has waited for at least so many seconds.
func (r *Report) Sentences(least float64) (all []string) {
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Seconds >= least {
			all = append(all, fmt.Sprintf("of %d ranks %s", g.Ranks, g.sentence()))
		}
	}
	if r.Unseen != nil {
		all = append(all, r.Unseen.sentence())
	}
	return all
}

// sentence is the verdict.
func (g *Group) sentence() string {
	what := fmt.Sprintf("%d wait in collective %d (%s), for %.1f s when that was written", len(g.Waiting), g.Number, g.Collective, g.Seconds)
	switch {
	case g.Mismatch:
		return what + "; the ranks have asked for different collectives under this number"
	case len(g.Missing) == 0:
		return what + "; every rank has come: they wait for the network, or for a rank that has stopped in it"
	}
	return what + "; " + g.absence()
}

func (r *Rank) missing() string {
	switch {
	case r.PID == nil:
		return "in no recording given"
	case r.Ended:
		return fmt.Sprintf("pid %-8d its process has ended", *r.PID)
	}
	text := fmt.Sprintf("pid %-8d has asked for none yet", *r.PID)
	if r.LastNumber != nil {
		text = fmt.Sprintf("pid %-8d last asked for %d (%s)", *r.PID, *r.LastNumber, r.Collective)
	}
	if r.Stopped != "" {
		text += "; " + r.Stopped
	}
	if r.Place != "" {
		text += "; last seen at " + r.Place
	}
	return text
}
