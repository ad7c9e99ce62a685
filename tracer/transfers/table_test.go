package transfers

import (
	"errors"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// record is one of a thread's sums: of reads from a file of ext4.
func record(change func(*bpf.SampleIoRecord)) *bpf.SampleIoRecord {
	r := &bpf.SampleIoRecord{Tgid: 7, Tid: 8, BornNs: 100, FirstNs: 1000, LastNs: 2000, Class: bpf.SampleIoClass{Mount: 3, Device: 8<<20 | 1,
		Type: 8, Operation: 1}}
	copy(r.Class.System[:], []int8{'e', 'x', 't', '4'})
	change(r)
	return r
}

func sumsOf(calls, bytes, ns uint64) bpf.SampleIoSums {
	return bpf.SampleIoSums{Calls: calls, Bytes: bytes, Ns: ns}
}

func testTable(mountinfo string) (*Table, *[]event.Warning) {
	warned := &[]event.Warning{}
	t := New(10_000, true, func(w event.Warning) { *warned = append(*warned, w) }, func() {})
	t.mounts.read = func(path string, limit int) ([]byte, error) {
		if mountinfo == "" {
			return nil, errors.New("it has ended")
		}
		return []byte(mountinfo), nil
	}
	return t, warned
}

// TestRowsAreWhatSumsHaveGrownBy: whatever became of records in between, none is counted twice.
func TestRowsAreWhatSumsHaveGrownBy(t *testing.T) {
	table, _ := testTable("")
	total := int64(0)
	add := func(want int64, change func(*bpf.SampleIoRecord)) {
		t.Helper()
		row, _ := table.Sums(record(change))
		if total += row.Bytes; row.Bytes != want {
			t.Errorf("%d bytes, want %d", row.Bytes, want)
		}
	}
	add(100, func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(1, 100, 10) })
	add(200, func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(3, 300, 30) })
	add(0, func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(2, 250, 20) }) // read from the ring after what the table has
	add(50, func(r *bpf.SampleIoRecord) { r.Generation, r.Sums = 1, sumsOf(1, 50, 5) })
	add(0, func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(4, 400, 40) }) // of what the place had before
	add(7, func(r *bpf.SampleIoRecord) { r.Slot, r.Sums = 5, sumsOf(1, 7, 5) })
	add(30, func(r *bpf.SampleIoRecord) { r.BornNs, r.Sums = 200, sumsOf(1, 30, 5) })   // another thread has the number
	add(0, func(r *bpf.SampleIoRecord) { r.BornNs, r.Sums = 100, sumsOf(9, 900, 900) }) // one before it
	add(0, func(r *bpf.SampleIoRecord) { r.BornNs, r.Event = 200, uint8(bpf.SampleIoEventIO_ENDED) })
	if total != 387 || len(table.threads) != 0 {
		t.Errorf("%d bytes in all, %d threads left", total, len(table.threads))
	}
}

func TestARowSaysWhatWasRead(t *testing.T) {
	table, _ := testTable("3 1 8:1 / /data\\040sets rw - fuse.lustre source rw\n")
	row, ok := table.Sums(record(func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(2, 100, 10) }))
	if !ok || row.Operation != "read" || row.Kind != "file" || row.FileSystem != "fuse.lustre" || row.Mount != "/data sets" ||
		row.Device != "8:1" ||
		row.TSNS != 11_000 || row.EndNS != 12_000 || *row.WaitedNS != 0 {
		t.Errorf("%+v", row)
	}
	for name, c := range map[string]struct {
		change func(*bpf.SampleIoRecord)
		kind   string
	}{
		"a descriptor that is not open": {func(r *bpf.SampleIoRecord) { r.Class = bpf.SampleIoClass{Operation: 1} }, "none"},
		"an eventfd":                    {func(r *bpf.SampleIoRecord) { r.Class.Type = 0 }, "other"},
		"a socket":                      {func(r *bpf.SampleIoRecord) { r.Class.Type = 12 }, "socket"},
		"too many kinds":                {func(r *bpf.SampleIoRecord) { r.Class = bpf.SampleIoClass{Type: several} }, ""},
	} {
		table, _ := testTable("")
		row, _ := table.Sums(record(func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(1, 1, 1); c.change(r) }))
		if row.Kind != c.kind {
			t.Errorf("%s is %q, want %q", name, row.Kind, c.kind)
		}
	}
}

// TestMountsOfAHostileJob: what is not as it should be has no directory, and costs no
// more than a bounded number of looks.
func TestMountsOfAHostileJob(t *testing.T) {
	for name, text := range map[string]string{
		"another's number": "33 1 8:1 / /a rw - ext4 s rw\n",
		"another device":   "3 1 8:2 / /a rw - ext4 s rw\n",
		"cut":              "3 1 8:1 / /a",
		"no type":          "3 1 8:1 / /a rw - \n",
		"a long name":      "3 1 8:1 / /" + strings.Repeat("a", 1<<16) + " rw - ext4 s rw\n",
	} {
		table, _ := testTable(text)
		row, _ := table.Sums(record(func(r *bpf.SampleIoRecord) { r.Sums = sumsOf(1, 1, 1) }))
		if row.Mount != "" || row.FileSystem != "ext4" {
			t.Errorf("%s: %q, %q", name, row.Mount, row.FileSystem)
		}
	}
	table, _ := testTable("3 1 8:1 / /a rw - ext4 s rw\n")
	looks := 0
	table.mounts.read = func(string, int) ([]byte, error) { looks++; return nil, errors.New("gone") }
	for i := range 3 * mostMounts {
		table.Sums(record(func(r *bpf.SampleIoRecord) { r.Tid, r.Class.Mount, r.Sums = uint32(i), uint32(i), sumsOf(1, 1, 1) }))
	}
	if looks > 2*mostMounts {
		t.Errorf("%d looks", looks)
	}
	table.Forget(7)
	if len(table.threads) != 0 {
		t.Errorf("%d threads of a process that has ended", len(table.threads))
	}
}

// TestWhatTheBudgetPassedByIsCounted: once, and warned of once for each process.
func TestWhatTheBudgetPassedByIsCounted(t *testing.T) {
	table, warned := testTable("")
	for i := range uint64(3) {
		table.Sums(record(func(r *bpf.SampleIoRecord) { r.Event, r.Passed = uint8(bpf.SampleIoEventIO_LEFT_OUT), 1000*i }))
		table.Sums(record(func(r *bpf.SampleIoRecord) { r.Event, r.Passed = uint8(bpf.SampleIoEventIO_TAKEN_IN), 1000*i+500 }))
	}
	table.Sums(record(func(r *bpf.SampleIoRecord) { r.Passed, r.Event = 2500, uint8(bpf.SampleIoEventIO_ENDED) }))
	alive := bpf.SampleIoThread{Tgid: 7, BornNs: 300, Passed: 500}
	for range 2 {
		table.Held(8, &alive, 0, 1<<62)
	}
	if passed := table.Losses()[0].Count; passed != 3000 || len(*warned) != 1 {
		t.Errorf("%d passed by, %d warnings", passed, len(*warned))
	}
}

func TestMeasuringIsGivenUpOnce(t *testing.T) {
	table, warned := testTable("")
	ended := 0
	table.giveUp = func() { ended++ }
	for range 3 {
		table.Sums(record(func(r *bpf.SampleIoRecord) { r.Event = uint8(bpf.SampleIoEventIO_GIVEN_UP) }))
	}
	if ended != 1 || len(*warned) != 1 {
		t.Errorf("ended %d times, %d warnings", ended, len(*warned))
	}
}

func TestALongCallIsASpan(t *testing.T) {
	table, _ := testTable("")
	r := &bpf.SampleIoCallRecord{Tgid: 7, Tid: 8, SpanId: 5, ParentId: 4, StartNs: 100, EndNs: 400, WaitedNs: 200, Result: 64,
		Class: record(func(*bpf.SampleIoRecord) {}).Class}
	if s := table.Call(r, "pread64"); s.Call.Name != "pread64" || s.Call.Layer != "io" || s.Call.Category != "file" || s.DurationNS != 300 ||
		*s.Detail.Bytes != 64 || *s.Detail.WaitedNS != 200 || s.Detail.FileSystem != "ext4" || s.Status != event.StatusOK || s.StartNS != 10_100 {
		t.Errorf("%+v %+v", s, s.Detail)
	}
	r.Result = -5
	if s := table.Call(r, "pread64"); s.Status != event.StatusError || *s.Detail.ErrorCode != 5 || s.Detail.Bytes != nil {
		t.Errorf("%+v %+v", s, s.Detail)
	}
}

func pathRecord(generation uint32, whole uint8, names ...string) *bpf.SampleIoPathRecord {
	r := &bpf.SampleIoPathRecord{Tgid: 7, Tid: 8, BornNs: 100, Slot: 2, Generation: generation, Whole: whole}
	for _, name := range names {
		for _, c := range []byte(name + "\x00") {
			r.Names[r.Bytes] = int8(c)
			r.Bytes++
		}
	}
	return r
}

// TestPathsAreThoseOfThePlace: of its present file, cleaned, below the mount's directory.
func TestPathsAreThoseOfThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		mountinfo string
		path      *bpf.SampleIoPathRecord
		want      string
	}{
		"whole":                 {"3 1 8:1 / /data rw - ext4 s rw\n", pathRecord(5, 1, "1.npy", "train"), "/data/train/1.npy"},
		"on the root":           {"3 1 8:1 / / rw - ext4 s rw\n", pathRecord(5, 1, "1.npy", "train"), "/train/1.npy"},
		"cut":                   {"3 1 8:1 / /data rw - ext4 s rw\n", pathRecord(5, 0, "1.npy", "train"), "/data/…/train/1.npy"},
		"cut on the root":       {"3 1 8:1 / / rw - ext4 s rw\n", pathRecord(5, 0, "1.npy"), "…/1.npy"},
		"a file is mounted":     {"3 1 8:1 / /data/one rw - ext4 s rw\n", pathRecord(5, 1), "/data/one"},
		"no such mount":         {"", pathRecord(5, 1, "1.npy", "train"), "train/1.npy"},
		"no UTF-8":              {"3 1 8:1 / /data rw - ext4 s rw\n", pathRecord(5, 1, "\xff\x1b"), "/data/\uFFFD\x1b"},
		"another's":             {"3 1 8:1 / /data rw - ext4 s rw\n", pathRecord(4, 1, "1.npy"), ""},
		"nothing could be read": {"3 1 8:1 / /data rw - ext4 s rw\n", pathRecord(5, 0), ""},
	} {
		table, _ := testTable(c.mountinfo)
		table.Path(c.path)
		row, _ := table.Sums(record(func(r *bpf.SampleIoRecord) { r.Slot, r.Generation, r.Sums = 2, 5, sumsOf(1, 1, 1) }))
		call := table.Call(&bpf.SampleIoCallRecord{Tgid: 7, Tid: 8, BornNs: 100, Slot: 2, Generation: 5,
			Class: record(func(*bpf.SampleIoRecord) {}).Class}, "read")
		if row.Path != c.want || call.Detail.Path != c.want {
			t.Errorf("%s: %q, of a long call %q, want %q", name, row.Path, call.Detail.Path, c.want)
		}
	}
	hostile := pathRecord(5, 1)
	hostile.Bytes = 1 << 30
	table, _ := testTable("")
	table.Path(hostile) // more than there is
}

// TestFaultsHaveNoBytes: and are of memory where no file is mapped.
func TestFaultsHaveNoBytes(t *testing.T) {
	for kind, change := range map[string]func(*bpf.SampleIoClass){
		"file": func(*bpf.SampleIoClass) {}, "memory": func(c *bpf.SampleIoClass) { *c = bpf.SampleIoClass{Type: memory} },
		"": func(c *bpf.SampleIoClass) { *c = bpf.SampleIoClass{} }, // Linux before 5.17
	} {
		table, _ := testTable("")
		row, ok := table.Sums(record(func(r *bpf.SampleIoRecord) {
			change(&r.Class)
			r.Class.Operation, r.Sums = operationFault, bpf.SampleIoSums{Calls: 3, WaitedNs: 70}
		}))
		if !ok || row.Operation != "fault" || row.Kind != kind || row.Calls != 3 || *row.WaitedNS != 70 {
			t.Errorf("%q: %+v", kind, row)
		}
	}
}
