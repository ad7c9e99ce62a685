// Package flightrecorder writes what a dataset has of collectives in the format of the
// dumps of PyTorch's flight recorder, one file a rank, which its analyser reads
// (python -m torch.distributed.flight_recorder.fr_trace DIRECTORY). The recorder itself
// is part of ProcessGroupNCCL; here gloo's ranks have dumps too, and jobs whose recorder
// was never switched on.
//
// The keys are those of the analyser's loader and builder in PyTorch 2.15; of what they
// do not read, only what the dataset knows is written. A dump has one key more,
// "ebpfprof": host, pid, what was left out, and what the recording lost.
package flightrecorder

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// version of the format, as PyTorch 2.15 writes it.
const version = "2.10"

// Prefix is how the files' names begin; the rank follows.
const Prefix = "nccl_trace_rank_"

// mostEntries are written of a rank, the last ones: as many as the recorder's default
// buffer has.
const mostEntries = 2000

// ErrNothing is returned where the dataset has no collectives that have numbers.
var ErrNothing = errors.New("the dataset has no collectives of torch.distributed with sequence numbers")

// Written says what was written.
type Written struct {
	Ranks   []int    `json:"ranks"`
	Missing []int    `json:"missing"`  // ranks of a group that no process of the dataset is
	Entries int      `json:"entries"`  // of all ranks
	LeftOut int      `json:"left_out"` // collectives whose kind the analyser does not know, or that some rank has not recorded
	Files   []string `json:"files"`
}

// Write writes the dumps into a directory, which is made if it does not exist.
func Write(ctx context.Context, db *dataset.DB, directory string) (*Written, error) {
	ranks, err := read(ctx, db)
	if err != nil {
		return nil, err
	}
	w := &Written{Missing: missing(ranks)}
	for _, r := range ranks {
		w.LeftOut += r.leftOut
	}
	w.LeftOut += align(ranks)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, fmt.Errorf("writing the dumps: %w", err)
	}
	for _, r := range ranks {
		name := filepath.Join(directory, fmt.Sprint(Prefix, r.rank))
		if err := r.write(name); err != nil {
			return nil, fmt.Errorf("writing the dumps: %w", err)
		}
		w.Ranks, w.Files, w.Entries = append(w.Ranks, r.rank), append(w.Files, name), w.Entries+len(r.entries)
	}
	return w, nil
}

// rankDump is what one file has.
type rankDump struct {
	rank    int
	pid     int64
	host    string
	groups  []group
	entries []entry
	leftOut int
	lost    int64 // rows that the recording lost, of all processes
}

// group is one that the rank is in.
type group struct {
	communicator      int64
	name, description string
	runtime           string
	ranks             []int // of the job
	completed         sql.NullInt64
	known             bool // of all its members it is known which ranks they are
}

// entry is one collective of one rank.
type entry struct {
	group              *group
	number             int64
	name               string // gloo:all_reduce
	in, out            [][]int64
	dtype              string
	created            int64
	started, completed sql.NullInt64
	frames             []frame
}

func (e *entry) state() string {
	switch {
	case e.completed.Valid || e.group.completed.Valid && e.group.completed.Int64 >= e.number:
		return "completed"
	case e.started.Valid:
		return "started"
	}
	return "scheduled"
}

// frame is a Python frame, the innermost first.
type frame struct {
	Name     string `json:"name"`
	Filename string `json:"filename"`
	Line     int64  `json:"line"`
}

// Of a rank that has had several processes the last one counts. A process's rank in the
// job is what its launcher said; without that, its rank in the group of all.
const groupsQuery = `SELECT c.communicator, coalesce(c.name, ''), coalesce(nullif(c.description, ''), 'undefined'), coalesce(c.runtime, ''), c.pid,
	c.rank, c.ranks, c.completed_number, coalesce(p.rank, r.rank), coalesce(s.host, ''), coalesce(p.started, 0)
FROM communicator c
LEFT JOIN (SELECT pid, any_value(rank) AS rank, max(started_ns) AS started FROM process GROUP BY pid) p USING (pid)
LEFT JOIN (SELECT pid, any_value(rank) AS rank FROM communicator WHERE description = 'default_pg' OR name = '0' GROUP BY pid) r USING (pid)
CROSS JOIN (SELECT any_value(host) AS host FROM session) s
WHERE c.communicator IS NOT NULL AND c.rank IS NOT NULL AND c.ranks BETWEEN 1 AND 65536
ORDER BY c.communicator, c.rank, 11`

// What is open is on disk within 2 s; the calls before it, which are spans, with the next
// rotation.
const callsQuery = `WITH issued AS (
	SELECT pid, communicator, sequence_number AS number, name, ts_ns, element_count, dtype, python_stack_id FROM span
	WHERE layer = 'collective' AND category = 'issue' AND communicator IS NOT NULL AND sequence_number IS NOT NULL
	UNION ALL
	SELECT pid, communicator, sequence_number, name, ts_ns, element_count, dtype, python_stack_id FROM open_call
	WHERE layer = 'collective' AND category IN ('issue', 'work') AND communicator IS NOT NULL AND sequence_number IS NOT NULL
), ran AS (
	SELECT pid, communicator, sequence_number AS number, min(ts_ns) AS started, max(ts_ns + duration_ns) AS ended FROM span
	WHERE layer = 'collective' AND category = 'work' AND communicator IS NOT NULL AND sequence_number IS NOT NULL GROUP BY ALL
), running AS (
	SELECT pid, communicator, sequence_number AS number, min(ts_ns) AS started FROM open_call
	WHERE category = 'work' AND communicator IS NOT NULL AND sequence_number IS NOT NULL GROUP BY ALL
)
SELECT i.pid, i.communicator, i.number, any_value(i.name), min(i.ts_ns), any_value(i.element_count), coalesce(any_value(i.dtype), ''),
	any_value(i.python_stack_id), coalesce(any_value(r.started), any_value(o.started)), any_value(r.ended)
FROM issued i LEFT JOIN ran r USING (pid, communicator, number) LEFT JOIN running o USING (pid, communicator, number)
GROUP BY i.pid, i.communicator, i.number ORDER BY i.pid, min(i.ts_ns), i.number`

const framesQuery = `SELECT stack_id, CAST(to_json(list_transform(list_filter(frames, lambda f: f.kind = 'python'),
	lambda f: {name: f."function", filename: f.file, line: coalesce(f.line, 0)})) AS VARCHAR)
FROM stack WHERE stack_id IN (SELECT python_stack_id FROM span WHERE layer = 'collective' UNION ALL SELECT python_stack_id FROM open_call)`

const lostQuery = `SELECT coalesce(sum(count), 0) FROM warning WHERE kind = 'lost'`

func read(ctx context.Context, db *dataset.DB) ([]*rankDump, error) {
	byPID, err := readGroups(ctx, db)
	if err != nil {
		return nil, err
	}
	frames := map[int64][]frame{}
	if err := each(ctx, db, framesQuery, func(rows *sql.Rows) error {
		var id int64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		var f []frame
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return err
		}
		frames[id] = f
		return nil
	}); err != nil {
		return nil, err
	}
	calls := 0
	if err := each(ctx, db, callsQuery, func(rows *sql.Rows) error {
		var pid, communicator int64
		var e entry
		var elements, stack sql.NullInt64
		if err := rows.Scan(&pid, &communicator, &e.number, &e.name, &e.created, &elements, &e.dtype, &stack, &e.started, &e.completed); err != nil {
			return err
		}
		r := byPID[pid]
		if r == nil {
			return nil // another process had this rank after it
		}
		calls++
		at := slices.IndexFunc(r.groups, func(g group) bool { return g.communicator == communicator && g.known })
		if at < 0 || !e.shaped(elements, len(r.groups[at].ranks)) {
			r.leftOut++
			return nil
		}
		e.group, e.frames = &r.groups[at], frames[stack.Int64]
		r.entries = append(r.entries, e)
		return nil
	}); err != nil {
		return nil, err
	}
	if calls == 0 {
		return nil, ErrNothing
	}
	var lost int64
	if err := db.Row(ctx, lostQuery, nil, &lost); err != nil {
		return nil, fmt.Errorf("reading what was lost: %w", err)
	}
	ranks := slices.SortedFunc(maps.Values(byPID), func(a, b *rankDump) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range ranks {
		r.lost = lost
	}
	return ranks, nil
}

// readGroups reads which process is which rank, and who is in each group.
func readGroups(ctx context.Context, db *dataset.DB) (map[int64]*rankDump, error) {
	type member struct {
		group
		pid, inGroup, ranks int64
		rank                sql.NullInt64
		host                string
	}
	var members []member
	if err := each(ctx, db, groupsQuery, func(rows *sql.Rows) error {
		var m member
		var started int64
		if err := rows.Scan(&m.communicator, &m.name, &m.description, &m.runtime, &m.pid, &m.inGroup, &m.ranks, &m.completed, &m.rank, &m.host, &started); err != nil {
			return err
		}
		members = append(members, m)
		return nil
	}); err != nil {
		return nil, err
	}
	last := map[int64]int64{} // process of a rank of the job
	of := map[int64][]int{}   // communicator: its members' ranks in the job, by their rank in it; -1 unknown
	for _, m := range members {
		if of[m.communicator] == nil {
			of[m.communicator] = slices.Repeat([]int{-1}, int(m.ranks))
		}
		if !m.rank.Valid || m.inGroup < 0 || m.inGroup >= m.ranks || int64(len(of[m.communicator])) != m.ranks {
			continue
		}
		of[m.communicator][m.inGroup] = int(m.rank.Int64)
		last[m.rank.Int64] = m.pid
	}
	byPID := map[int64]*rankDump{}
	for _, m := range members {
		if !m.rank.Valid || last[m.rank.Int64] != m.pid {
			continue
		}
		if byPID[m.pid] == nil {
			byPID[m.pid] = &rankDump{rank: int(m.rank.Int64), pid: m.pid, host: m.host}
		}
		g := m.group
		if g.description == "default_pg" || g.name == "0" { // all ranks of the job, recorded or not
			for i := range of[m.communicator] {
				of[m.communicator][i] = i
			}
		}
		g.ranks = of[m.communicator]
		g.known = !slices.Contains(g.ranks, -1)
		byPID[m.pid].groups = append(byPID[m.pid].groups, g)
	}
	return byPID, nil
}

func each(ctx context.Context, db *dataset.DB, query string, scan func(*sql.Rows) error) error {
	rows, err := db.Query(ctx, query)
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

// missing are the ranks of groups that no process of the dataset is.
func missing(ranks []*rankDump) []int {
	here, all := map[int]bool{}, map[int]bool{}
	for _, r := range ranks {
		here[r.rank] = true
		for _, g := range r.groups {
			for _, rank := range g.ranks {
				all[rank] = g.known || all[rank]
			}
		}
	}
	delete(all, -1)
	maps.DeleteFunc(all, func(rank int, known bool) bool { return here[rank] || !known })
	return slices.Sorted(maps.Keys(all))
}

// align takes out what was asked for before all recorded members of a group were
// recorded, and returns how many collectives that were: the analyser pairs the first of
// each rank with each other.
func align(ranks []*rankDump) (leftOut int) {
	begin := map[int64]int64{} // communicator: the first number that all of its members with entries have
	for _, r := range ranks {
		mine := map[int64]int64{}
		for _, e := range r.entries {
			if n, is := mine[e.group.communicator]; !is || e.number < n {
				mine[e.group.communicator] = e.number
			}
		}
		for communicator, number := range mine {
			begin[communicator] = max(begin[communicator], number)
		}
	}
	for _, r := range ranks {
		before := len(r.entries)
		r.entries = slices.DeleteFunc(r.entries, func(e entry) bool { return e.number < begin[e.group.communicator] })
		if more := len(r.entries) - mostEntries; more > 0 {
			r.entries = r.entries[more:]
		}
		leftOut += before - len(r.entries)
	}
	return leftOut
}

// collective is a kind of collective as the recorder calls it, and how many of one
// rank's share its input and its output have: 1, or those of all ranks.
type collective struct {
	name          string
	allIn, allOut bool
	nothing       bool // it moves nothing
}

var collectives = map[string]collective{
	"allreduce":                       {name: "all_reduce"},
	"allreduce_coalesced":             {name: "allreduce_coalesced"},
	"reduce":                          {name: "reduce"},
	"broadcast":                       {name: "broadcast"},
	"allgather":                       {name: "all_gather", allOut: true},
	"_allgather_base":                 {name: "_all_gather_base", allOut: true},
	"all_gather_single":               {name: "all_gather_single", allOut: true},
	"allgather_coalesced":             {name: "allgather_coalesced", allOut: true},
	"allgather_into_tensor_coalesced": {name: "all_gather_into_tensor_coalesced", allOut: true},
	"all_gather_single_coalesced":     {name: "all_gather_into_tensor_coalesced", allOut: true},
	"reduce_scatter":                  {name: "reduce_scatter", allIn: true},
	"_reduce_scatter_base":            {name: "_reduce_scatter_base", allIn: true},
	"reduce_scatter_single":           {name: "reduce_scatter_single", allIn: true},
	"reduce_scatter_tensor_coalesced": {name: "reduce_scatter_tensor_coalesced", allIn: true},
	"reduce_scatter_single_coalesced": {name: "reduce_scatter_tensor_coalesced", allIn: true},
	"gather":                          {name: "gather"},
	"gather_single":                   {name: "gather"},
	"scatter":                         {name: "scatter"},
	"alltoall":                        {name: "all_to_all"},
	"alltoall_base":                   {name: "all_to_all"},
	"all_to_all_single":               {name: "all_to_all_single"},
	"barrier":                         {name: "barrier", nothing: true},
	"monitoredBarrier":                {name: "barrier", nothing: true},
}

// shaped gives an entry its name and sizes, of one rank's share of elements; false for a
// kind that the analyser does not know. Sizes are numbers of elements: the analyser
// compares no more.
func (e *entry) shaped(elements sql.NullInt64, ranks int) bool {
	runtime, method, _ := strings.Cut(e.name, "::")
	c, is := collectives[method]
	if !is {
		return false
	}
	e.name = runtime + ":" + c.name
	e.dtype = dtype(e.dtype)
	sizes := func(all bool) [][]int64 {
		one := []int64{elements.Int64}
		if !all {
			return [][]int64{one}
		}
		return slices.Repeat([][]int64{one}, ranks)
	}
	if c.nothing || !elements.Valid {
		e.in, e.out, e.dtype = [][]int64{{}}, [][]int64{{}}, ""
		return true
	}
	e.in, e.out = sizes(c.allIn), sizes(c.allOut)
	return true
}

// dtypes are PyTorch's names of element types, by those of a dataset.
var dtypes = map[string]string{
	"float": "Float", "double": "Double", "c10::Half": "Half", "c10::BFloat16": "BFloat16", "long int": "Long", "int": "Int",
	"short int": "Short", "signed char": "Char", "unsigned char": "Byte", "bool": "Bool",
	"c10::complex<float>": "ComplexFloat", "c10::complex<double>": "ComplexDouble",
}

func dtype(name string) string {
	if known, is := dtypes[name]; is {
		return known
	}
	return name
}
