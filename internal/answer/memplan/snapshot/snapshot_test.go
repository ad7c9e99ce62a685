package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
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
	cache := cacheDirectory()
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

// cacheDirectory has what the make targets fetch.
func cacheDirectory() string {
	if cache := os.Getenv("EBPFPROF_CACHE"); cache != "" {
		return cache
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "ebpfprof")
}

// TestViewerTellsThePeak: the functions of PyTorch's memory viewer read what is written and find our peaks, to the
// byte: of two devices, with blocks that were there before and ones that stay, and of more events than one call of
// JavaScript takes arguments. Where it is: memory_viz in the cache, with torch/utils/viz/MemoryViz.js and
// process_alloc_data.js of PyTorch's sources, which no package has.
func TestViewerTellsThePeak(t *testing.T) {
	directory := filepath.Join(cacheDirectory(), "memory_viz")
	if _, err := os.Stat(filepath.Join(directory, "process_alloc_data.js")); err != nil {
		t.Skip("PyTorch's viewer is not here: ", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node here")
	}
	var devices []Device
	for _, events := range []int{3_000, 150_000} {
		devices = append(devices, Device{Lives: many(events), Paths: map[int64]holders.Path{
			1: {{File: "train.py", Line: 3, Function: "main"}}, 2: {{Function: "aten::mul"}}}})
	}
	for name, until := range map[string]func(*blocks.Lives) int64{
		"end":  func(l *blocks.Lives) int64 { return l.Ticks },
		"peak": func(l *blocks.Lives) int64 { return l.PeakTick },
	} {
		path := filepath.Join(t.TempDir(), name)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Write(file, devices, until), file.Close()); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(node, "testdata/viewer.js", directory, path).CombinedOutput()
		want := fmt.Sprintf("%[1]d %[1]d\n%[2]d %[2]d\n", devices[0].Lives.Peak, devices[1].Lives.Peak)
		if err != nil || string(out) != want {
			t.Errorf("%s: %v: %s, want %s", name, err, out, want)
		}
	}
}

// many are blocks of one device: some that were there before, some that stay.
func many(events int) *blocks.Lives {
	type live struct{ address, bytes int64 }
	r := rand.New(rand.NewPCG(uint64(events), 1))
	next := int64(0x7f00_0000_0000)
	var alive []live
	var all []blocks.Event
	for k := range events {
		e := blocks.Event{TSNS: int64(k) * 1000, Allocated: blocks.Unknown, Reserved: blocks.Unknown, Duration: blocks.Unknown}
		switch {
		case k < 10: // was there before
			e.Action, e.Address, e.Bytes = blocks.Free, int64(k+1)<<30, 512
		case k%5 == 0 && len(alive) > 20 || len(alive) > 40:
			at := r.IntN(len(alive))
			e.Action, e.Address, e.Bytes = blocks.Free, alive[at].address, alive[at].bytes
			alive[at] = alive[len(alive)-1]
			alive = alive[:len(alive)-1]
		default:
			e.Address, e.Bytes, e.Path = next, 512*(1+r.Int64N(1<<14)), r.Int64N(3)
			next += e.Bytes
			alive = append(alive, live{e.Address, e.Bytes})
		}
		all = append(all, e)
	}
	return blocks.Build([]blocks.Arena{{}}, all)[0]
}
