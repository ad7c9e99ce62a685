package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/fleet/localise"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// What a pattern means changes between versions of the analysis: since version 2
// `preempted` is not of the training thread alone. In a fleet that is being updated
// workers would differ by that, so those of one version are compared, which most of them
// have, and the others are named.

// meaning is which patterns can be compared: those of a job and of one version.
type meaning struct{ job, version string }

// chooseMeaning chooses the version of the analysis, and notes what it leaves out.
func (r *Report) chooseMeaning(table []pattern.Pattern, of []string) (meaning, error) {
	workers := map[string]map[localise.Worker]bool{}
	for i := range table {
		if workers[of[i]] == nil {
			workers[of[i]] = map[localise.Worker]bool{}
		}
		workers[of[i]][localise.Worker{Host: table[i].Host, PID: table[i].PID, Rank: table[i].Rank}] = true
	}
	if len(workers) == 0 {
		return meaning{}, fmt.Errorf("%w of job %q since then", ErrNoJob, r.Job)
	}
	most, chosen := "", false
	for version, of := range workers {
		if n := len(workers[most]); !chosen || len(of) > n || len(of) == n && later(version, most) {
			most, chosen = version, true
		}
	}
	if most != store.AnalysisVersion {
		r.Notes = append(r.Notes, fmt.Sprintf("the patterns are of version %s of the analysis, and this program knows version %s: what they "+
			"say of class host may be read wrongly",
			orUnknown(most), store.AnalysisVersion))
	}
	left := map[localise.Worker]bool{}
	var versions, hosts []string
	for version, of := range workers {
		for w := range of {
			if !workers[most][w] {
				left[w] = true
				hosts = append(hosts, w.Host)
			}
		}
		if version != most {
			versions = append(versions, orUnknown(version))
		}
	}
	if len(versions) == 0 {
		return meaning{r.Job, most}, nil
	}
	slices.Sort(versions)
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	note := fmt.Sprintf("patterns mean the same within one version of the analysis only, and those of version %s are compared",
		orUnknown(most))
	if len(left) > 0 {
		note += fmt.Sprintf("; left out: %s, of version %s, on %s: let all agents be of one version", plural(len(left), "worker"),
			strings.Join(versions, " and "), some(hosts))
	} else {
		note += fmt.Sprintf("; what the same workers sent of version %s is left out", strings.Join(versions, " and "))
	}
	r.Notes = append(r.Notes, note)
	return meaning{r.Job, most}, nil
}

// later compares versions, which count up: longer is later.
func later(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) > 0
}

// orUnknown is how a version is written. Anybody may have written it.
func orUnknown(version string) string {
	if len(version) > 20 {
		version = version[:20] + "…"
	}
	return cmp.Or(version, "unknown")
}

// some names the first of many.
func some(names []string) string {
	var shown []string
	for _, name := range names[:min(len(names), namedJobs)] {
		shown = append(shown, printable.Short(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - namedJobs; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
