package snapshot

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/memplan/pickle"
)

const text = `{"segments":[{"device":0,"address":4096,"total_size":2097152,"stream":0,"segment_type":"small","frames":[],
 "blocks":[{"size":512,"requested_size":500,"state":"active_allocated","frames":[{"filename":"/home/u/a.py","line":3,"name":"f"}]},
  {"size":1024,"requested_size":1000,"state":"active_allocated","frames":[]},{"size":2095616,"requested_size":0,"state":"inactive","frames":[]}]}],
 "device_traces":[[{"action":"segment_alloc","addr":4096,"size":2097152,"stream":0,"time_us":10,"frames":[]},
  {"action":"alloc","addr":4608,"size":1024,"stream":0,"time_us":20,"frames":[{"filename":"/home/u/a.py","line":7,"name":"g"}]},
  {"action":"alloc","addr":9999,"size":256,"stream":0,"time_us":30,"frames":[]},
  {"action":"free_requested","addr":9999,"size":256,"stream":0,"time_us":40,"frames":[]},
  {"action":"free_completed","addr":9999,"size":256,"stream":0,"time_us":41,"frames":[]}],
  [{"action":"oom","addr":0,"size":1099511627776,"stream":0,"time_us":50,"device_free":0,"frames":[]}]],
 "allocator_settings":{"expandable_segments":false}}`

// TestReadsJSON: events, what was there before the trace, stacks, and what is
// ignored is counted.
func TestReadsJSON(t *testing.T) {
	s, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if s.Before != 1 || s.Ignored["segment_alloc"] != 1 || s.Ignored["free_requested"] != 1 || s.Reserved[0] != 2<<20 || len(s.Arenas) != 2 {
		t.Errorf("%+v", s)
	}
	l := blocks.Build(s.Arenas, s.Events)[0]
	if l.Peak != 512+1024+256 || l.Partial() || len(l.Blocks) != 3 || s.Paths[l.Blocks[0].Path].Line() != "/home/u/a.py:3 (f)" {
		t.Errorf("peak %d, blocks %+v", l.Peak, l.Blocks)
	}
}

// TestBrokenSnapshotsAreErrors: none panics, and a small file cannot stand for
// more events than is accepted.
func TestBrokenSnapshotsAreErrors(t *testing.T) {
	for _, broken := range []string{"", "{", "[]", "{}", `{"segments":[3]}`, `{"device_traces":[[3]]}`, `{"device_traces":[[{}]]}`,
		`{"device_traces":[[{"action":"alloc","addr":1,"size":-4}]]}`, `{"segments":[{"blocks":[1]}]}`, "\x80\x04}.", "\x80\x04]."} {
		if s, err := Read(strings.NewReader(broken)); err == nil {
			t.Errorf("%q: %+v", broken, s)
		}
	}
	if _, err := Read(strings.NewReader("\x80\x04cos\nsystem\n.")); !errors.Is(err, pickle.ErrNotData) {
		t.Errorf("a program: %v", err)
	}
	var b bytes.Buffer
	w := pickle.NewWriter(&b)
	w.Dict()
	w.Text("device_traces")
	w.List()
	for range 2000 {
		w.List()
		w.EndList()
	}
	w.EndList()
	w.EndDict()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&b); !errors.Is(err, pickle.ErrTooLarge) {
		t.Errorf("two thousand devices: %v", err)
	}
}

// TestPyTorchReadsWhatIsWritten: its own _memory_viz.py adds up our segments to the
// peak, to the byte, and draws the trace.
func TestPyTorchReadsWhatIsWritten(t *testing.T) {
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	found, _ := filepath.Glob(filepath.Join(cache, "torch-venv/lib/python3*/site-packages/torch/cuda/_memory_viz.py"))
	if len(found) == 0 {
		t.Skip("no PyTorch here: make torch")
	}
	s, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	l := blocks.Build(s.Arenas, s.Events)[0]
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[int64]holders.Path{}
	for id, p := range s.Paths {
		paths[id] = p
	}
	err = errors.Join(Write(file, []Device{{l, paths}}, func(l *blocks.Lives) int64 { return l.PeakTick }), file.Close())
	if err != nil {
		t.Fatal(err)
	}
	program := `import sys, pickle, importlib.util
spec = importlib.util.spec_from_file_location("viz", sys.argv[1]); viz = importlib.util.module_from_spec(spec); spec.loader.exec_module(viz)
snapshot = pickle.load(open(sys.argv[2], "rb"))
assert viz.segsum(snapshot) and viz.trace(snapshot) and viz.trace_plot(snapshot) and viz.segment_plot(snapshot)
print(sum(viz.calc_active(segment) for segment in snapshot["segments"]))`
	python := filepath.Join(cache, "torch-venv/bin/python")
	var complaints bytes.Buffer
	command := exec.Command(python, "-c", program, found[0], path)
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	if got := strings.TrimSpace(string(out)); got != "1792" || l.Peak != 1792 {
		t.Errorf("PyTorch adds up %s bytes, the peak is %d", got, l.Peak)
	}
}
