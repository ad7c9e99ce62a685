package cupti

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// words makes a record: its size and correlation, and then fields of four or eight bytes.
func words(kind uint16, correlation uint32, fields ...any) []byte {
	b := binary.LittleEndian.AppendUint16(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, correlation)
	for _, f := range fields {
		switch f := f.(type) {
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, f)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, f)
		case string:
			b = append(b, f...)
		}
	}
	b = append(b, make([]byte, max(0, sizes[kind]-len(b)))...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

func chunk(pid int32, sequence uint64, records ...[]byte) []byte {
	all := bytes.Join(records, nil)
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(chunkHeader+len(all)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(records)))
	b = binary.LittleEndian.AppendUint32(b, 130001)
	b = binary.LittleEndian.AppendUint64(b, sequence)
	b = binary.LittleEndian.AppendUint64(b, 0)
	c := event.ActivityChunk{TSNS: 1, PID: pid, Bytes: append(b, all...)}
	return c.AppendTo(nil)
}

type kept struct {
	work  []Work
	calls []Call
}

func (k *kept) Work(w Work) error { k.work = append(k.work, w); return nil }
func (k *kept) Call(c Call) error { k.calls = append(k.calls, c); return nil }

func read(t *testing.T, chunks ...[]byte) (*kept, map[int32]*Process) {
	t.Helper()
	var k kept
	found, err := Read(bytes.NewReader(bytes.Join(chunks, nil)), func(pid int32) bool { return pid == 7 }, &k)
	if err != nil {
		t.Fatal(err)
	}
	return &k, found
}

// kernel lies by CUPTI's clock.
func kernel(start, end, name uint64) []byte {
	return words(kindKernel, 5, start, end, name, uint64(9), uint32(1), uint32(2), uint32(3), uint32(4),
		uint32(10), uint32(11), uint32(12), uint32(32), uint32(1), uint32(1), uint32(4096), uint32(40))
}

// A clock that gains one part in a thousand: between two readings a time lies where it belongs.
func TestTimesAreMovedToTheKernelsClock(t *testing.T) {
	k, found := read(t,
		chunk(7, 0, words(kindClock, 0, uint64(1_000_000), uint64(400_000), uint64(400_200)),
			words(kindName, 0, uint64(77), uint32(4), uint32(0), "gemm")),
		chunk(7, 1, words(kindClock, 0, uint64(2_001_000), uint64(1_400_000), uint64(1_400_200)), kernel(1_500_500, 1_500_700, 77)),
		chunk(8, 0, kernel(1, 2, 3)))
	w := k.work[0]
	if w.StartNS != 900_100 || w.EndNS != 900_300 || w.Name != "gemm" || w.Correlation != 5 || w.Node != 9 ||
		w.Device != 1 || w.Context != 2 ||
		w.Stream != 3 || w.Grid != [3]uint32{10, 11, 12} || w.Block != [3]uint32{32, 1, 1} || w.Shared != 4096 {
		t.Errorf("%+v", w)
	}
	p := found[7]
	if p.Chunks != 2 || p.Counts.Work != 1 || p.Readings != 2 || p.NarrowNS != 200 || p.Bad+p.Missing+p.Unnamed != 0 || found[0].Chunks != 1 {
		t.Errorf("%+v, others %+v", p, found[0])
	}
}

func TestWhatIsMissingIsCounted(t *testing.T) {
	_, found := read(t,
		chunk(7, 2, words(kindClock, 0, uint64(1_000), uint64(400), uint64(400)), kernel(1_500, 1_600, 78)),
		chunk(7, 5, words(kindLost, 0, uint64(11), uint64(12), uint64(13))),
		chunk(7, 4), chunk(7, 1<<60))
	if c := found[7].Counts; c.Missing != 2 || c.Unnamed != 1 || c.Dropped != 11 || c.Refused != 12 || c.Unknown != 13 {
		t.Errorf("%+v", c)
	}
}

// A process that executes another program has a library that counts from the beginning.
func TestWhatIsMissingOfTwoProgramsIsAdded(t *testing.T) {
	_, found := read(t, chunk(7, 0), chunk(7, 2, words(kindLost, 0, uint64(1), uint64(2), uint64(1<<63))),
		chunk(7, 0), chunk(7, 3, words(kindLost, 0, uint64(10), uint64(20), uint64(1<<63))))
	if c := found[7].Counts; c.Missing != 3 || c.Dropped != 11 || c.Refused != 22 || c.Unknown != 1<<62 {
		t.Errorf("%+v", c)
	}
}

// CUPTI's times are those of another clock: without a reading of both they are nowhere in the recording.
func TestTimesWithoutAReadingOfTheClocksAreLeftOut(t *testing.T) {
	k, found := read(t,
		chunk(7, 1, kernel(1_500, 1_600, 78), words(kindCall, 3, uint64(1_400), uint64(1_450), uint32(1))),
		chunk(7, 2, words(kindClock, 0, uint64(2_000), uint64(400), uint64(400)), kernel(1_700, 1_800, 78)))
	if p := found[7]; len(k.work) != 1 || len(k.calls) != 0 || k.work[0].StartNS != 100 || p.Bad != 2 {
		t.Errorf("%+v, %+v: %+v", k.work, k.calls, p)
	}
}

func TestALibraryThatDoesNotRecordSaysWhy(t *testing.T) {
	_, found := read(t, chunk(7, 0, words(kindState, 0, uint32(4), uint32(39), uint32(19), uint32(7), "cuptiActivityEnable")))
	const want = "CUPTI refused cuptiActivityEnable with its error 39: is another profiler in the job?"
	if got := found[7].States[0].String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever a process hands over, it is counted: nothing breaks, and no time is negative.
func TestGarbageIsCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var chunks [][]byte
	for n := range uint64(2000) {
		b := chunk(7, n, words(kindClock, 0, uint64(1_000_000), uint64(400_000), uint64(400_200)), kernel(1_500_500, 1_500_700, 77),
			words(kindName, 0, uint64(77), uint32(4), uint32(0), "gemm"), words(kindCall, 3, uint64(1), uint64(2), uint32(1)))
		for range 1 + random.IntN(6) {
			b[16+random.IntN(len(b)-16)] = byte(random.Uint32())
		}
		chunks = append(chunks, b)
	}
	k, found := read(t, chunks...)
	if p := found[7]; p.Chunks != 2000 || p.Bad == 0 || len(p.States) > mostStates {
		t.Errorf("%+v", p)
	}
	for _, w := range k.work {
		if w.EndNS < w.StartNS || w.EndNS-w.StartNS > longest {
			t.Fatalf("%+v", w)
		}
	}
}
