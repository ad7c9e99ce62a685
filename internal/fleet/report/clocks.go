package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// The hosts of a job have clocks of their own. All ranks of a group leave a collective at
// nearly the same time: how far the clocks are apart is the median of the differences
// between the exits of the same collectives, and what those vary by is the error.

// Clock is a host's clock, against the first worker's.
type Clock struct {
	Host     string  `json:"host"`
	OffsetMS float64 `json:"offset_ms"` // it is ahead by so much
	// ErrorMS is half of the range that nine in ten of the differences are in.
	ErrorMS     float64 `json:"error_ms"`
	Collectives int     `json:"collectives"` // that were compared
}

// leastExits is how many collectives two hosts must have in common.
const leastExits = 5

// exitColumns are the columns of the last collective of a step; NULL where no agent or
// upload of the store was new enough to write them.
func exitColumns(ctx context.Context, db Source) (string, error) {
	rows, err := db.Query(ctx, "SELECT * FROM worker_step LIMIT 0")
	if err != nil {
		return "", fmt.Errorf("reading the columns of steps: %w", err)
	}
	defer rows.Close()
	there, err := rows.Columns()
	if err != nil {
		return "", fmt.Errorf("reading the columns of steps: %w", err)
	}
	names := []string{"communicator", "sequence_number", "exit_ns"}
	for i, name := range names {
		if !slices.Contains(there, name) {
			names[i] = "CAST(NULL AS BIGINT)"
		}
	}
	return strings.Join(names, ", "), nil
}

// collective names one on all hosts.
type collective struct{ group, number int64 }

// setClocks compares the hosts' clocks, and puts all steps on that of the first worker.
func (r *Report) setClocks() {
	r.Clocks = []Clock{}
	if len(r.steps) == 0 {
		return
	}
	exits, hosts := r.exits()
	reference := r.steps[0][0].Host
	ahead := map[string]int64{}
	for _, host := range hosts {
		if host == reference {
			continue
		}
		var differences []float64
		for c, at := range exits[host] {
			if other := exits[reference][c]; len(other) > 0 {
				differences = append(differences, steps.Median(at)-steps.Median(other))
			}
		}
		if len(differences) < leastExits {
			r.Notes = append(r.Notes, fmt.Sprintf("how far the clock of %s is from that of %s is not known: %d collectives of both were recorded",
				host, reference, len(differences)))
			continue
		}
		slices.Sort(differences)
		last := float64(len(differences) - 1)
		low, high := differences[int(0.05*last)], differences[int(0.95*last+0.5)]
		offset := steps.Median(differences)
		ahead[host] = int64(offset)
		r.Clocks = append(r.Clocks, Clock{host, offset / 1e6, (high - low) / 2e6, len(differences)})
	}
	for _, worker := range r.steps {
		for i := range worker {
			worker[i].BeginNS -= ahead[worker[i].Host]
		}
	}
}

// exits are when each host's ranks left each collective, ns since the report's begin.
func (r *Report) exits() (exits map[string]map[collective][]float64, hosts []string) {
	exits = map[string]map[collective][]float64{}
	for _, worker := range r.steps {
		for _, s := range worker {
			if s.Exit == nil {
				continue
			}
			if exits[s.Host] == nil {
				exits[s.Host] = map[collective][]float64{}
				hosts = append(hosts, s.Host)
			}
			c := collective{s.Exit.Communicator, s.Exit.Number}
			exits[s.Host][c] = append(exits[s.Host][c], float64(s.Exit.NS-r.BeginNS))
		}
	}
	return exits, hosts
}
