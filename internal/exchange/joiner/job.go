package joiner

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
)

// ErrOtherJob is wrapped by errors about recordings that are not of one job.
var ErrOtherJob = errors.New("not recordings of one job")

// recording is one of those that are joined.
type recording struct {
	dataset  string // where it lies
	session  string
	renamed  string // its name among the others; the session's own unless another has that
	host     string
	boot     string
	imported bool
	offset   int64 // of its clock from the kernel's
	started  int64
	numbers  keys.Recording
	ranks    []int64
	world    int64 // how many ranks it says the job has; 0 where it does not
	job      string
	ids      map[int64]int64 // pids by the ids of its processes
	groups   map[int64]bool  // of ranks, of which there are at least two
	met      map[meeting]moment
	shift    keys.Shift
	clock    Clock
}

// name is how messages call it.
func (r *recording) name() string {
	if r.host == "" {
		return r.dataset
	}
	return fmt.Sprintf("%s (of %s)", r.dataset, r.host)
}

const sessionsSQL = `SELECT session_id, coalesce(host, ''), coalesce(boot_id, ''), coalesce(source, 'recorded') <> 'recorded',
	clock_offset_ns, started_ns
FROM session ORDER BY started_ns, session_id`

const processesSQL = `SELECT session_id, process_id, pid::BIGINT, rank::BIGINT, world_size::BIGINT, coalesce(job_id, '') FROM process`

const groupsSQL = `SELECT DISTINCT session_id, communicator FROM communicator WHERE communicator IS NOT NULL AND ranks > 1`

// meetingsSQL are the collectives in which each rank needs something of all others: the call that
// asked for one says which it is, and what a library's thread or a device ran when. Of one that a
// process appears twice neither is known to be it.
const meetingsSQL = `WITH meets AS (SELECT DISTINCT session_id, communicator, sequence_number FROM span
	WHERE layer IN ('collective', 'device') AND regexp_matches(lower(name), 'all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier')),
ran AS (SELECT session_id, communicator, sequence_number AS number, pid, count(*) AS n, min(ts_ns) AS entered,
max(ts_ns + duration_ns) AS ended
	FROM span SEMI JOIN meets USING (session_id, communicator, sequence_number)
	WHERE (layer = 'collective' AND category = 'work' OR layer = 'device' AND category = 'collective') AND duration_ns > 0
	GROUP BY ALL)
SELECT session_id, communicator, number, max(entered), min(ended), median(ended)::BIGINT FROM ran GROUP BY ALL HAVING max(n) = 1`

// read reads what a dataset says of its recordings.
func read(ctx context.Context, db *dataset.DB, path string) (all []*recording, err error) {
	of := map[string]*recording{}
	err = db.Each(ctx, sessionsSQL, func(v []driver.Value) error {
		r := &recording{dataset: path, ids: map[int64]int64{}, groups: map[int64]bool{}, met: map[meeting]moment{}}
		r.session, _ = v[0].(string)
		r.host, _ = v[1].(string)
		r.boot, _ = v[2].(string)
		r.imported, _ = v[3].(bool)
		r.offset, _ = v[4].(int64)
		r.started, _ = v[5].(int64)
		r.renamed = r.session
		of[r.session], all = r, append(all, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sessions of %s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no session: what has no row of table session cannot be joined", path)
	}
	numbers, err := db.Recordings(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the processes of %s: %w", path, err)
	}
	for _, n := range numbers {
		if r := of[n.Session]; r != nil {
			r.numbers = n
		}
	}
	// each goes through rows whose first column is a session.
	each := func(what, sql string, row func(r *recording, v []driver.Value)) {
		if err != nil {
			return
		}
		err = db.Each(ctx, sql, func(v []driver.Value) error {
			session, _ := v[0].(string)
			if r := of[session]; r != nil {
				row(r, v)
			}
			return nil
		})
		if err != nil {
			err = fmt.Errorf("reading the %s of %s: %w", what, path, err)
		}
	}
	each("processes", processesSQL, func(r *recording, v []driver.Value) {
		id, _ := v[1].(int64)
		pid, _ := v[2].(int64)
		r.ids[id] = pid
		if rank, has := v[3].(int64); has && !slices.Contains(r.ranks, rank) {
			r.ranks = append(r.ranks, rank)
		}
		if world, _ := v[4].(int64); world > 0 {
			r.world = max(r.world, world)
		}
		if job, _ := v[5].(string); job != "" {
			r.job = job
		}
	})
	each("groups", groupsSQL, func(r *recording, v []driver.Value) {
		group, _ := v[1].(int64)
		r.groups[group] = true
	})
	each("collectives", meetingsSQL, func(r *recording, v []driver.Value) {
		n := [5]int64{}
		for i := range n {
			n[i], _ = v[i+1].(int64)
		}
		r.met[meeting{n[0], n[1]}] = moment{n[2], n[3], n[4]}
	})
	for _, r := range all {
		slices.Sort(r.ranks)
	}
	return all, err
}

// oneJob refuses recordings that are not of one job.
func oneJob(all []*recording) error {
	for i, r := range all {
		if r.world > 0 && len(r.ranks) > 0 && r.ranks[len(r.ranks)-1] >= r.world {
			return fmt.Errorf("%w: %s has rank %d of a job of %d ranks", ErrOtherJob, r.name(), r.ranks[len(r.ranks)-1], r.world)
		}
		for _, o := range all[:i] {
			if err := r.contradicts(o); err != nil {
				return err
			}
		}
	}
	// Each must have something in common with one that belongs to the first.
	joined, rest := all[:1:1], slices.Clone(all[1:])
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(r *recording) bool { return slices.ContainsFunc(joined, r.shares) })
		if i < 0 {
			return fmt.Errorf("%w: %s and %s have no group of ranks, no job's name and no number of ranks in common: "+
				"record them with the launcher's variables (RANK, WORLD_SIZE), or import their traces together", ErrOtherJob, all[0].name(),
				rest[0].name())
		}
		joined, rest = append(joined, rest[i]), slices.Delete(rest, i, i+1)
	}
	return nil
}

// contradicts says why two recordings cannot be of one run of a job.
func (r *recording) contradicts(o *recording) error {
	for _, rank := range r.ranks {
		if slices.Contains(o.ranks, rank) {
			return fmt.Errorf("%w: rank %d is in both %s and %s", ErrOtherJob, rank, o.name(), r.name())
		}
	}
	if !r.imported && !o.imported {
		for id, pid := range r.ids {
			if _, both := o.ids[id]; both {
				return fmt.Errorf("%w: process %d is in both %s and %s: two recordings of one process cannot be joined", ErrOtherJob, pid, o.name(),
					r.name())
			}
		}
	}
	if r.world > 0 && o.world > 0 && r.world != o.world {
		return fmt.Errorf("%w: %s has %d ranks, %s has %d", ErrOtherJob, o.name(), o.world, r.name(), r.world)
	}
	if r.job != "" && o.job != "" && r.job != o.job && !r.sharesGroup(o) {
		return fmt.Errorf("%w: %s is of job %q, %s of %q", ErrOtherJob, o.name(), o.job, r.name(), r.job)
	}
	return nil
}

func (r *recording) sharesGroup(o *recording) bool {
	for group := range r.groups {
		if o.groups[group] {
			return true
		}
	}
	return false
}

// shares says whether something of two recordings tells that they are of one job.
func (r *recording) shares(o *recording) bool {
	return r.sharesGroup(o) || r.job != "" && r.job == o.job ||
		r.world > 1 && r.world == o.world && len(r.ranks) > 0 && len(o.ranks) > 0
}

// missing says which ranks nobody recorded; "" where all were, or it is not known how many there are.
func missing(all []*recording) string {
	world := slices.MaxFunc(all, func(a, b *recording) int { return cmp.Compare(a.world, b.world) }).world
	there := map[int64]bool{}
	for _, r := range all {
		for _, rank := range r.ranks {
			there[rank] = true
		}
	}
	if world == 0 || len(there) == 0 || int64(len(there)) >= world {
		return ""
	}
	const most = 8
	var names []string
	for rank := int64(0); rank < world && len(names) <= most; rank++ {
		if !there[rank] {
			names = append(names, fmt.Sprint(rank))
		}
	}
	if len(names) > most {
		names[most] = "…"
	}
	return fmt.Sprintf("%d of the job's %d ranks are in none of the recordings: %s", world-int64(len(there)), world, strings.Join(names, ", "))
}
