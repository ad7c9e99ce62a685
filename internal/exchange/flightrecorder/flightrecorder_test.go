package flightrecorder

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func present(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: true} }

// dumpOf is a rank of a group of three that has asked for some collectives, the last of
// which has not ended.
func dumpOf(t *testing.T, rank int, numbers ...int64) *rankDump {
	t.Helper()
	r := &rankDump{rank: rank, pid: int64(100 + rank), host: "n\xff1", groups: []group{{communicator: 9, name: "0", description: "default_pg",
		ranks: []int{0, 1, 2}, known: true}}}
	for i, n := range numbers {
		e := entry{group: &r.groups[0], number: n, name: "gloo::allgather", dtype: "long int", created: 1000 + n,
			frames: []Frame{{"step", "/j/train.py", 7}}}
		if !e.shaped(present(5), 3) {
			t.Fatal("allgather is not known")
		}
		if e.started = present(1001 + n); i < len(numbers)-1 {
			e.completed = present(1002 + n)
		}
		r.entries = append(r.entries, e)
	}
	return r
}

func TestWhatNotAllRanksHaveRecordedIsLeftOut(t *testing.T) {
	ranks := []*rankDump{dumpOf(t, 0, 3, 4, 5), dumpOf(t, 1, 4, 5), dumpOf(t, 2, 2, 3, 4, 5, 6)}
	if n := align(ranks); n != 3 {
		t.Errorf("%d left out", n)
	}
	var all []string
	for _, r := range ranks {
		numbers := ""
		for _, e := range r.entries {
			numbers += fmt.Sprint(e.number)
		}
		all = append(all, numbers)
	}
	if got := strings.Join(all, " "); got != "45 45 456" {
		t.Error(got)
	}
}

func TestKindsThatTheReaderDoesNotKnowAreLeftOut(t *testing.T) {
	e := entry{name: "gloo::allreduce_sparse"}
	if e.shaped(present(1), 2) {
		t.Error("allreduce_sparse has a name there")
	}
	e = entry{name: "nccl::_reduce_scatter_base", dtype: "c10::BFloat16"}
	if !e.shaped(present(4), 2) || e.name != "nccl:_reduce_scatter_base" || fmt.Sprintf("%v %v %s", e.in, e.out,
		e.dtype) != "[[4] [4]] [[4]] BFloat16" {
		t.Errorf("%+v", e)
	}
	e = entry{name: "gloo::barrier", dtype: ""}
	if !e.shaped(sql.NullInt64{}, 2) || fmt.Sprint(e.in) != "[[]]" {
		t.Errorf("%+v", e)
	}
}

// PyTorch's own analyser reads the dumps and names the rank that has not come.
func TestPyTorchReadsTheDumps(t *testing.T) {
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	python := filepath.Join(cache, "torch-venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("no PyTorch 2 here: make torch")
	}
	directory := t.TempDir()
	for _, r := range []*rankDump{dumpOf(t, 0, 4, 5), dumpOf(t, 1, 4), dumpOf(t, 2, 4, 5)} {
		if err := r.write(filepath.Join(directory, fmt.Sprint(Prefix, r.rank))); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, "-m", "torch.distributed.flight_recorder.fr_trace", directory).CombinedOutput()
	for _, want := range []string{"sequence number: 5", "missing ranks: {1}", "collective: gloo:all_gather", "collective state: started",
		"step at /j/train.py:7"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}
