package evidence

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Source is an opened store: a dataset.DB, or Spark.
type Source interface {
	Query(ctx context.Context, sql string, args ...any) (*sql.Rows, error)
	Files(table string) []string // without any the table is not there
}

// Incident is a time at which a job was blocked, by what the agents of its nodes knew then.
type Incident struct {
	Job string `json:"job"`
	// AtNS is when the last of the nodes gave its verdict, SinceNS the first sign on any of
	// them after which nothing came.
	AtNS    int64    `json:"ts_ns"`
	SinceNS int64    `json:"since_ns"`
	Hosts   []string `json:"hosts"`
	Dumps   []string `json:"dumps"` // host:directory of the flight recorder's dumps
	hang.Verdict
	// StepsAfter: the job has made steps since, so that it has gone on.
	StepsAfter bool `json:"steps_after"`
}

// Bounds of what is read: who may write into a store must not fill memory.
const (
	mostHangRows = 50_000
	mostTexts    = 256 << 20 // bytes of stacks
)

// apart is how far apart the verdicts of two nodes on one hang may be: both wait as many
// of the job's own steps, and then for stacks.
const apart = time.Minute

// hangQuery asks for the newest rows first, so that a flood of old ones pushes none out.
const hangQuery = `SELECT job, host, ts_ns, since_ns, pid, rank, ended, communicator, coalesce(group_name, ''), group_rank, group_ranks,
	issued_number, coalesce(issued_name, ''), open_number, coalesce(open_name, ''), coalesce(open_for_ns, 0), coalesce(place, ''),
	coalesce(threads, ''), coalesce(dump, '')
FROM hang WHERE job = ? AND ts_ns >= ? AND ts_ns <= ? ORDER BY ts_ns DESC, host, pid, communicator LIMIT ` // and how many

// stored is a node's part of an incident.
type stored struct {
	job, host, dump string
	at, since       int64
	places          map[int64]string // of processes that do not wait
	hang.Recording
}

// Incidents are those of a job between two times, the latest first.
func Incidents(ctx context.Context, db Source, job string, from, until int64) ([]Incident, error) {
	if len(db.Files(store.HangTable)) == 0 {
		return nil, nil
	}
	parts, err := readParts(ctx, db, job, from, until)
	if err != nil {
		return nil, err
	}
	var all []Incident
	for len(parts) > 0 {
		together, rest := oneHang(parts)
		all = append(all, incident(together))
		parts = rest
	}
	for i := range all {
		if all[i].StepsAfter, err = wentOn(ctx, db, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// oneHang takes the latest word of each host on the latest hang. What a host said before its
// latest word was of another hang if the job went on in between; else it said it again.
func oneHang(parts []*stored) (together, rest []*stored) {
	latest := map[string]*stored{}
	for n, p := range parts {
		if n > 0 && parts[n-1].at-p.at > apart.Nanoseconds() {
			return together, parts[n:]
		}
		switch later := latest[p.host]; {
		case later == nil:
			latest[p.host], together = p, append(together, p)
		case later.since > p.at:
			return together, parts[n:]
		}
	}
	return together, nil
}

// incident judges what its nodes knew together.
func incident(parts []*stored) Incident {
	in := Incident{Job: parts[0].job, AtNS: parts[0].at, SinceNS: parts[0].since, Dumps: []string{}}
	var recordings []*hang.Recording
	for _, p := range parts {
		in.SinceNS = min(in.SinceNS, p.since)
		in.Hosts = append(in.Hosts, p.host)
		if p.dump != "" {
			in.Dumps = append(in.Dumps, p.host+":"+p.dump)
		}
		recordings = append(recordings, &p.Recording)
	}
	slices.Sort(in.Hosts)
	slices.Sort(in.Dumps)
	in.Verdict = hang.Judge(recordings...)
	return in
}

// readParts reads rows as what each host knew at a time, the latest first.
func readParts(ctx context.Context, db Source, job string, from, until int64) (parts []*stored, err error) {
	texts := 0
	err = each(ctx, db, hangQuery+fmt.Sprint(mostHangRows), func(rows *sql.Rows) error {
		var r row
		if err := r.scan(rows); err != nil {
			return err
		}
		if n := len(parts); n == 0 || parts[n-1].host != r.host || parts[n-1].at != r.at {
			parts = append(parts, newPart(&r))
		}
		if texts += len(r.threads); texts > mostTexts {
			r.threads = ""
		}
		return parts[len(parts)-1].add(&r)
	}, job, from, until)
	return parts, err
}

type row struct {
	job, host, group, issued, name, place, threads, dump string
	at, since, pid, openFor                              int64
	ended                                                bool
	rank, communicator, groupRank, groupRanks            sql.NullInt64
	number, open                                         sql.NullInt64
}

func (r *row) scan(rows *sql.Rows) error {
	return rows.Scan(&r.job, &r.host, &r.at, &r.since, &r.pid, &r.rank, &r.ended, &r.communicator, &r.group, &r.groupRank, &r.groupRanks,
		&r.number, &r.issued, &r.open, &r.name, &r.openFor, &r.place, &r.threads, &r.dump)
}

func newPart(r *row) *stored {
	p := &stored{job: r.job, host: r.host, dump: r.dump, at: r.at, since: r.since, places: map[int64]string{}}
	p.Host, p.Waits, p.Threads = r.host, map[hang.Of]hang.Wait{}, map[int64][]hang.Thread{}
	p.LastPlace = func(pid int64) string { return p.places[pid] }
	return p
}

// add takes a row. Others may have written it.
func (p *stored) add(r *row) error {
	if _, read := p.Threads[r.pid]; !read && r.threads != "" {
		var threads []hang.Thread
		if json.Unmarshal([]byte(r.threads), &threads) == nil {
			for i := range threads { // what judges them asks for the first
				if len(threads[i].TIDs) == 0 {
					threads[i].TIDs = []int64{r.pid}
				}
			}
			p.Threads[r.pid] = threads
		}
	}
	if !r.ended && !slices.ContainsFunc(p.Processes, func(k hang.Known) bool { return k.PID == r.pid }) {
		p.Processes = append(p.Processes, hang.Known{PID: r.pid, Rank: present(r.rank)})
	}
	of := hang.Of{Group: r.communicator.Int64, PID: r.pid}
	if !r.open.Valid {
		p.places[r.pid] = r.place
	}
	if !r.communicator.Valid || !r.groupRank.Valid || !r.groupRanks.Valid {
		return nil
	}
	p.Members = append(p.Members, hang.Member{Group: of.Group, Name: r.group, PID: r.pid, Rank: r.groupRank.Int64, Ranks: r.groupRanks.Int64,
		Number: present(r.number), Collective: r.issued, Ended: r.ended})
	if r.open.Valid {
		p.Waits[of] = hang.Wait{Number: r.open.Int64, Seconds: float64(r.openFor) / 1e9, Collective: r.name, Place: r.place}
	}
	return nil
}

// wentOn is whether the job has made steps after an incident, on any of its nodes.
func wentOn(ctx context.Context, db Source, in *Incident) (on bool, err error) {
	if len(db.Files("worker_step")) == 0 {
		return false, nil
	}
	return on, each(ctx, db, "SELECT count(*) > 0 FROM worker_step WHERE job = ? AND begin_ns > ?", func(rows *sql.Rows) error {
		return rows.Scan(&on)
	}, in.Job, in.AtNS)
}

// LastJob is the job that was blocked last; "" if none was.
func LastJob(ctx context.Context, db Source) (job string, err error) {
	if len(db.Files(store.HangTable)) == 0 {
		return "", nil
	}
	return job, each(ctx, db, "SELECT coalesce(max_by(job, ts_ns), '') FROM hang", func(rows *sql.Rows) error { return rows.Scan(&job) })
}

func each(ctx context.Context, db Source, query string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("reading the collectives: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("reading the collectives: %w", err)
		}
	}
	return rows.Err()
}
