// Package flightrecorder writes what was recorded of collectives in the format of the
// dumps of PyTorch's flight recorder, one file a rank, which its analyser reads
// (python -m torch.distributed.flight_recorder.fr_trace DIRECTORY). The recorder itself
// is part of ProcessGroupNCCL; here gloo's ranks have dumps too, and jobs whose recorder
// was never switched on.
//
// The keys are those of the analyser's loader and builder in PyTorch 2.15; of what they
// do not read, only what was recorded is written. A dump has one key more, "ebpfprof":
// host, pid, what was left out, and what the recording lost, the last of it by its time.
package flightrecorder

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// version of the format, as PyTorch 2.15 writes it.
const version = "2.10"

// Prefix is how the files' names begin; the rank follows.
const Prefix = "nccl_trace_rank_"

// MostEntries are written of a rank, the last ones: as many as the recorder's default
// buffer has.
const MostEntries = 2000

// ErrNothing is returned where there are no collectives that have numbers.
var ErrNothing = errors.New("the recording has no collectives of torch.distributed with sequence numbers")

// Written says what was written.
type Written struct {
	Ranks   []int    `json:"ranks"`
	Missing []int    `json:"missing"`  // ranks of a group that no process of the dataset is
	Entries int      `json:"entries"`  // of all ranks
	LeftOut int      `json:"left_out"` // collectives whose kind the analyser does not know, or that some rank has not recorded
	Files   []string `json:"files"`
}

// Write writes the dumps into a directory, which is made if it does not exist.
func Write(job *Job, directory string) (*Written, error) {
	ranks := job.dumps()
	if len(job.Calls) == 0 || len(ranks) == 0 {
		return nil, ErrNothing
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
	lost    *Lost
}

// group is one that the rank is in.
type group struct {
	communicator      int64
	name, description string
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
	frames             []Frame
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

// Frame is a Python frame.
type Frame struct {
	Name     string `json:"name"`
	Filename string `json:"filename"`
	Line     int64  `json:"line"`
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
		if more := len(r.entries) - MostEntries; more > 0 {
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
