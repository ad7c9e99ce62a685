package whatif

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// row is what a file has; pointers may be null.
type row struct {
	DPRank   int32   `parquet:"dp_rank"`
	Stage    int32   `parquet:"stage"`
	Rank     int32   `parquet:"rank"`
	Step     int64   `parquet:"step"`
	OpType   string  `parquet:"optype,dict"`
	Start    float32 `parquet:"start_ts"`
	Duration float32 `parquet:"duration"`
	Seq      int32   `parquet:"seq_id"`
	MC       *int32  `parquet:"mc"`
	MB       *int32  `parquet:"mb_id"`
	GMC      *int32  `parquet:"gmc"`
}

func writeTrace[T any](t testing.TB, rows ...T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.parquet")
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return path
}

func goodRow() row { return row{OpType: "optimizer", Start: 1.5, Duration: 0.25, Rank: 7, Step: 3} }

func TestTraceIsReadAsItWasWritten(t *testing.T) {
	two := int32(2)
	second := row{DPRank: 1, Stage: 2, Rank: 9, Step: 3, OpType: "forward-compute",
		Start: 0.1, Duration: 0.2, Seq: 4, MC: &two, MB: &two, GMC: &two}
	trace, err := ReadTrace(writeTrace(t, goodRow(), second))
	if err != nil {
		t.Fatal(err)
	}
	want := []Op{
		{Rank: 7, Step: 3, Type: Optimizer, Start: 1.5, Duration: 0.25, Chunk: -1, GlobalChunk: -1, MicroBatch: -1},
		{1, 2, 9, 3, ForwardCompute, float64(float32(0.1)), float64(float32(0.2)), 4, 2, 2, 2},
	}
	if len(trace.Ops) != 2 || trace.Ops[0] != want[0] || trace.Ops[1] != want[1] {
		t.Errorf("got %+v", trace.Ops)
	}
}

func TestBadTracesAreASentence(t *testing.T) {
	type noStep struct {
		DPRank int32  `parquet:"dp_rank"`
		OpType string `parquet:"optype"`
	}
	type textStart struct {
		row
		Start string `parquet:"start_ts"`
	}
	type nullStage struct {
		row
		Stage *int32 `parquet:"stage"`
	}
	with := func(change func(*row)) string {
		r := goodRow()
		change(&r)
		return writeTrace(t, goodRow(), r)
	}
	good, err := os.ReadFile(writeTrace(t, goodRow()))
	if err != nil {
		t.Fatal(err)
	}
	file := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "f.parquet")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ path, says string }{
		{file(nil), "empty"},
		{file([]byte("dp_size: 4\n")), "not readable as Parquet"},
		{file(good[:len(good)-20]), "not readable as Parquet"},
		{t.TempDir(), "directory"},
		{writeTrace(t, noStep{}), "no column stage, rank, step, start_ts, duration, seq_id, mc, mb_id, gmc"},
		{writeTrace(t, textStart{row: goodRow()}), "start_ts is"},
		{writeTrace(t, nullStage{row: goodRow()}), "stage: row 0 has no value"},
		{writeTrace[row](t), "no operations"},
		{with(func(r *row) { r.DPRank = -1 }), "dp_rank -1"},
		{with(func(r *row) { r.Duration = float32(math.NaN()) }), "NaN"},
		{with(func(r *row) { r.Duration = -1 }), "takes -1 seconds"},
		{with(func(r *row) {}), "two operations optimizer with seq_id 0"},
	} {
		_, err := ReadTrace(c.path)
		if !errors.Is(err, ErrBadTrace) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want a sentence with %q, got %v", c.says, err)
		}
	}
	if _, err := ReadTrace(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestWhatTheReplayDoesNotKnowIsLeftOutWithAWarning(t *testing.T) {
	load, other := goodRow(), goodRow()
	load.OpType = "data-load"
	other.Rank = 8
	trace, err := ReadTrace(writeTrace(t, goodRow(), load, other))
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Ops) != 1 || trace.Ops[0].Rank != 7 || len(trace.Warnings) != 2 ||
		!strings.Contains(trace.Warnings[0], "data-load") {
		t.Errorf("%+v, warnings %q", trace.Ops, trace.Warnings)
	}
}

func TestDescriptions(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"dp_size: 4\npp_size: 2\n", ""},
		{"", "dp_size is 0"},
		{"dp_size: 4\n", "pp_size is 0"},
		{"dp_size: -4\npp_size: 2", "dp_size is -4"},
		{"dp_size: [4\n", "yaml"},
		{"dp_size: many\npp_size: 2", "yaml"},
		{"dp_size: 4\npp_size: 2\nvpp_size: 0", "vpp_size is 0"},
	} {
		path := filepath.Join(t.TempDir(), "meta.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := ReadMeta(path)
		switch {
		case c.says == "" && (err != nil || m.Workers() != 8 || m.VPPSize != 1):
			t.Errorf("%q: %+v, %v", c.text, m, err)
		case c.says != "" && (!errors.Is(err, ErrBadMeta) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "\n")):
			t.Errorf("%q: want %q, got %v", c.text, c.says, err)
		}
	}
}

// A file that someone else wrote may be damaged anywhere: an error, never a crash.
func FuzzReadTrace(f *testing.F) {
	content, err := os.ReadFile(writeTrace(f, goodRow()))
	if err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(content); i += 7 {
		damaged := append([]byte(nil), content...)
		damaged[i] ^= 0xff
		f.Add(damaged)
	}
	f.Add(content)
	path := filepath.Join(f.TempDir(), "t.parquet")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if trace, err := ReadTrace(path); err == nil && len(trace.Ops) == 0 {
			t.Error("neither operations nor an error")
		}
	})
}

// These claimed a footer of 2.8 GB in a file of 2 KB, and the library made room for it.
func TestADamagedTraceTakesNoMemory(t *testing.T) {
	good, err := os.ReadFile(writeTrace(t, goodRow()))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	read := func(content []byte) (allocated uint64, err error) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = ReadTrace(path)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	const most = 64 << 20
	for _, footer := range []uint32{0x7fffffff, 0xfffffff0, 0xa6000000} {
		content := slices.Clone(good)
		binary.LittleEndian.PutUint32(content[len(content)-8:], footer)
		if took, err := read(content); !errors.Is(err, ErrBadTrace) || took > most {
			t.Errorf("a footer of %d bytes: %d MB, %v", footer, took>>20, err)
		}
	}
	for i := range len(good) - 1 {
		for _, claimed := range []uint16{0x7fff} {
			content := slices.Clone(good)
			binary.LittleEndian.PutUint16(content[i:], claimed)
			if took, _ := read(content); took > most {
				t.Errorf("%x at byte %d: %d MB", claimed, i, took>>20)
			}
		}
	}
}
