package source

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// written are rows of a recording, and the events that they are.
func written(n int) (rows []event.Memory, arenas []blocks.Arena, events []blocks.Event) {
	r := rand.New(rand.NewPCG(1, 2))
	maybe := func(v int64) (*int64, int64) {
		if r.IntN(3) == 0 {
			return nil, blocks.Unknown
		}
		return &v, v
	}
	known := map[blocks.Arena]int32{}
	for k := range n {
		row := event.Memory{TSNS: 1_700_000_000_000_000_000 + int64(k), PID: int32(1 + k%3/2), TID: int32(10 + k%7), Space: "host",
			Level: "allocator", Address: r.Int64(), Weight: float64(1 + k/(n/2))}
		e := blocks.Event{TSNS: row.TSNS, TID: row.TID, Address: row.Address, Weight: float32(row.Weight)}
		a := blocks.Arena{Session: "test", PID: row.PID, Space: "host", Level: "allocator", Device: blocks.Unknown}
		if k%5 == 0 {
			device := int32(k % 2)
			row.Space, row.DeviceID, a.Space, a.Device = "device", &device, "device", device
		}
		row.Bytes, e.Bytes = maybe(r.Int64N(1 << 40))
		row.TotalAllocatedBytes, e.Allocated = maybe(r.Int64N(1 << 40))
		row.TotalReservedBytes, e.Reserved = maybe(r.Int64N(1 << 40))
		e.Duration = blocks.Unknown
		if row.StackID, e.Path = maybe(1 + r.Int64N(1000)); row.StackID == nil {
			e.Path = 0
		}
		if k%11 == 0 { // Python's comes first
			row.PythonStackID, e.Path = int64(2000+k), int64(2000+k)
		}
		switch k % 4 {
		case 0, 1:
			row.Action, e.Action = "alloc", blocks.Alloc
		case 2:
			row.Action, e.Action = "free", blocks.Free
		default:
			row.Action = []string{"map", "out_of_memory"}[k/4%2]
			e.Action = blocks.OutOfMemory
		}
		if k < n/4 { // a stretch in which a column has no value at all
			row.TotalReservedBytes, e.Reserved = nil, blocks.Unknown
		}
		rows = append(rows, row)
		if row.Action == "map" {
			continue // it changes no bytes
		}
		at, is := known[a]
		if !is {
			at = int32(len(arenas))
			known[a], arenas = at, append(arenas, a)
		}
		e.Arena = at
		events = append(events, e)
	}
	return rows, arenas, events
}

func read(t *testing.T, dir string) ([]blocks.Arena, []blocks.Event) {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	arenas, events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return arenas, events
}

// recorded writes rows.
func recorded(t *testing.T, rows []event.Memory) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dataset")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Session(event.Recording{ID: "test", StartedNS: 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(&event.Batch{Memory: rows}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEventsAreTheRows: of more rows than are read at once, with values that are
// missing here and there, all along, and of rows that are no events.
func TestEventsAreTheRows(t *testing.T) {
	rows, arenas, events := written(3*batch + 17)
	gotArenas, got := read(t, recorded(t, rows))
	if !slices.Equal(arenas, gotArenas) {
		t.Errorf("arenas %v, want %v", gotArenas, arenas)
	}
	same(t, events, got)
}

func same(t *testing.T, want, got []blocks.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func nothing(v int64) *int64 {
	if v == 0 {
		return nil
	}
	return &v
}

// TestEventsOfOtherWriters: files in which texts and numbers stand as they are, in
// many pages and row groups, instead of numbers of a dictionary.
func TestEventsOfOtherWriters(t *testing.T) {
	type plain struct {
		SessionID string  `parquet:"session_id"`
		TSNS      int64   `parquet:"ts_ns"`
		PID       int32   `parquet:"pid"`
		TID       int32   `parquet:"tid"`
		Space     string  `parquet:"space"`
		Device    *int32  `parquet:"device_id,optional"`
		Level     string  `parquet:"level"`
		Action    string  `parquet:"action"`
		Address   int64   `parquet:"address"`
		Bytes     *int64  `parquet:"bytes,optional"`
		Allocated *int64  `parquet:"total_allocated_bytes,optional"`
		Reserved  *int64  `parquet:"total_reserved_bytes,optional"`
		Stack     *int64  `parquet:"stack_id,optional"`
		Python    *int64  `parquet:"python_stack_id,optional"`
		Weight    float64 `parquet:"weight"`
	}
	rows, arenas, events := written(2*batch + 5)
	dir := recorded(t, rows)
	old, err := filepath.Glob(filepath.Join(dir, "memory", "*-0*.parquet"))
	if err != nil || len(old) == 0 {
		t.Fatalf("%v: %v", old, err)
	}
	for _, path := range old[1:] {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(old[0])
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[plain](f, parquet.MaxRowsPerRowGroup(1000), parquet.PageBufferSize(4096),
		parquet.KeyValueMetadata(output.MetadataSession, "test"))
	for _, r := range rows {
		if _, err := w.Write([]plain{{"test", r.TSNS, r.PID, r.TID, r.Space, r.DeviceID, r.Level, r.Action, r.Address, r.Bytes,
			r.TotalAllocatedBytes, r.TotalReservedBytes, r.StackID, nothing(r.PythonStackID), r.Weight}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	gotArenas, got := read(t, dir)
	if !slices.Equal(arenas, gotArenas) {
		t.Errorf("arenas %v, want %v", gotArenas, arenas)
	}
	same(t, events, got)
}

// TestDamagedPagesAreRefused: whatever bytes change, reading ends with events or an error.
func TestDamagedPagesAreRefused(t *testing.T) {
	rows, _, _ := written(2000)
	dir := recorded(t, rows)
	files, err := filepath.Glob(filepath.Join(dir, "memory", "*-0*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 300 {
		damaged := slices.Clone(whole)
		for range 1 + r.IntN(4) {
			damaged[4+r.IntN(len(damaged)-8)] = byte(r.IntN(256))
		}
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := opened.openRows(files[0])
		if err != nil {
			refused++
			continue
		}
		for _, g := range f.groups {
			if g.read() != nil {
				refused++
			}
		}
		f.Close()
	}
	if refused == 0 {
		t.Error("nothing was refused: the test tells nothing")
	}
}
