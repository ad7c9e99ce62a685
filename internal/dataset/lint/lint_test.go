package lint

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// trace is a made-up import: 200 launches of 10 µs kernels on one stream.
func trace(change func(all []event.Span) []event.Span) []event.Span {
	launch := &event.Call{Layer: "runtime", Category: "launch", Name: "cudaLaunchKernel"}
	kernel := &event.Call{Layer: "device", Category: "kernel", Name: "gemm"}
	var all []event.Span
	for i := range int64(200) {
		id, stream := 2*i+1, int64(7)
		all = append(all,
			event.Span{ID: id, StartNS: 1e15 + i*20_000, DurationNS: 4_001, PID: 1, TID: 1, Call: launch, End: event.EndImported, Weight: 1,
				SequenceNumber: -1},
			event.Span{ID: id + 1, StartNS: 1e15 + i*20_000 + 5_000, DurationNS: 10_001, PID: 1, Call: kernel, End: event.EndImported, Weight: 1,
				SequenceNumber: -1,
				Detail:         &event.Detail{LaunchID: &id, Stream: &stream}})
	}
	return change(all)
}

func checked(t *testing.T, spans []event.Span, more func(*output.Dataset) error) (*dataset.DB, *Result) {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := int64(2e15)
	err = errors.Join(d.Session(event.Recording{ID: "s", EndedNS: &ended}), d.Write(&event.Batch{Spans: spans}))
	if more != nil {
		err = errors.Join(err, more(d))
	}
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(d.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r, err := Run(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	return db, r
}

func same(all []event.Span) []event.Span { return all }

func TestACleanTraceIsWhole(t *testing.T) {
	_, r := checked(t, trace(same), nil)
	if r.LeftOut != 0 || r.Rows != 400 || r.Sentence() != "computed on 100 % of 400 rows" {
		t.Errorf("%s", r.Sentence())
	}
	for _, c := range r.Checks {
		if c.Severity != OK {
			t.Errorf("%+v", c)
		}
	}
}

func TestEachDamageIsLeftOutWithItsReason(t *testing.T) {
	for reason, duration := range map[string]int64{
		"no_duration": -1, "zero_duration": 0, "longer_than_recording": 3600e9, "covers_others": 900_000,
	} {
		db, r := checked(t, trace(func(all []event.Span) []event.Span {
			all[101].DurationNS = duration
			return all
		}), nil)
		if r.LeftOut != 1 || len(r.Reasons) != 1 || r.Reasons[0].Name != reason || !strings.Contains(r.Sentence(),
			"99.8 % of rows; 1 left out, because") {
			t.Errorf("%s: %s", reason, r.Sentence())
		}
		// The kernel ran all the same, as long as the others.
		var rows, total int64
		if err := db.Row(t.Context(), "SELECT count(*), sum(duration_ns)::BIGINT FROM good_span WHERE layer = 'device'", nil, &rows,
			&total); err != nil || rows != 200 || total != 200*10_001 {
			t.Errorf("%s: %d rows of %d ns count, %v", reason, rows, total, err)
		}
		if ns, is := r.Instead[dataset.Row{Session: "s", ID: 102}]; !is || ns != 10_001 || r.Replaced != 1 {
			t.Errorf("%s: %v stand for what was left out", reason, r.Instead)
		}
	}
}

// TestWhatOnlyLooksOddStays: kernels of one graph overlap; a long kernel has its
// stream to itself; a collective that waits for its peers; whole microseconds.
func TestWhatOnlyLooksOddStays(t *testing.T) {
	for name, change := range map[string]func([]event.Span) []event.Span{
		"a graph's branches": func(all []event.Span) []event.Span {
			for i := 101; i < 121; i += 2 {
				all[i].Detail.LaunchID = all[101].Detail.LaunchID
			}
			all[101].DurationNS = 250_000
			return all
		},
		"a long kernel with nothing beside it": func(all []event.Span) []event.Span {
			for i := 102; i < len(all); i++ {
				all[i].StartNS += 5_000_000
			}
			all[101].DurationNS = 5_000_000
			return all
		},
		"another stream": func(all []event.Span) []event.Span {
			other := int64(8)
			all[101].Detail.Stream = &other
			all[101].DurationNS = 900_000
			return all
		},
		"chained launches": func(all []event.Span) []event.Span {
			all[101].DurationNS = 20_500
			return all
		},
		"no time in whole microseconds": func(all []event.Span) []event.Span {
			for i := range all {
				all[i].DurationNS = all[i].DurationNS / 1000 * 1000
			}
			all[101].DurationNS = 0
			return all
		},
	} {
		if _, r := checked(t, trace(change), nil); r.LeftOut != 0 {
			t.Errorf("%s: %s", name, r.Sentence())
		}
	}
}

func TestChecksThatWarn(t *testing.T) {
	rank, parent := int32(0), int32(9)
	for name, c := range map[string]struct {
		change func([]event.Span) []event.Span
		more   func(*output.Dataset) error
		count  int64
	}{
		"launches_without_work": {func(all []event.Span) []event.Span { return append(all[:301], all[302:]...) }, nil, 1},
		"work_without_launch": {func(all []event.Span) []event.Span {
			all[301].Detail.LaunchID = nil
			return all
		}, nil, 1},
		"nothing_at_the_start":   {func(all []event.Span) []event.Span { return append(all[:1:1], all[2:]...) }, nil, 1},
		"work_before_its_launch": {func(all []event.Span) []event.Span { all[301].StartNS -= 50_000; return all }, nil, 1},
		"events_lost": {same, func(d *output.Dataset) error {
			return d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1, Kind: "lost", Source: "ring", Count: 17}}})
		}, 17},
		"ranks_twice": {same, func(d *output.Dataset) error {
			return errors.Join(d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, ParentPID: &parent, Rank: &rank}}}),
				d.Write(&event.Batch{Processes: []event.Process{{ID: 2, PID: 2, ParentPID: &parent, Rank: &rank}}}))
		}, 1},
		"ranks_missing": {same, func(d *output.Dataset) error {
			world := int32(8)
			return d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, Rank: &rank, WorldSize: &world}}})
		}, 7},
	} {
		_, r := checked(t, trace(c.change), c.more)
		found := false
		for _, check := range r.Checks {
			if check.Name == name {
				found = check.Count == c.count && check.Severity != OK
			}
		}
		if !found || r.LeftOut != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAnEmptyDatasetIsChecked(t *testing.T) {
	if _, r := checked(t, nil, nil); r.Rows != 0 || r.LeftOut != 0 || r.Percent != 100 {
		t.Errorf("%+v", r)
	}
}

// Rows of an older import may begin decades before the others.
func TestRowsAtImpossibleTimesAreLeftOut(t *testing.T) {
	for _, start := range []int64{0, -1, 1_000_000, 8e18} {
		db, r := checked(t, trace(func(all []event.Span) []event.Span {
			for i := range all {
				all[i].StartNS += 1.7e18
			}
			all[101].StartNS, all[202].StartNS = start, start
			return all
		}), nil)
		if r.LeftOut != 2 || len(r.Reasons) != 1 || r.Reasons[0].Name != impossibleTime {
			t.Errorf("%d: %s", start, r.Sentence())
		}
		var rows, span int64
		if err := db.Row(t.Context(), "SELECT count(*), max(ts_ns) - min(ts_ns) FROM good_span", nil, &rows, &span); err != nil || rows != 398 ||
			span != 199*20_000+5_000 {
			t.Errorf("%d: %d rows over %d ns, %v", start, rows, span, err)
		}
	}
}

// What an import left out is among what answers are not computed on.
func TestRowsThatTheImportLeftOutAreCounted(t *testing.T) {
	_, r := checked(t, trace(same), func(d *output.Dataset) error {
		return d.Write(&event.Batch{Warnings: []event.Warning{{Kind: impossibleTime, Source: "t.json", Count: 100}}})
	})
	if r.Rows != 500 || r.LeftOut != 100 || !strings.HasPrefix(r.Sentence(), "computed on 80.0 % of rows; 100 left out, because 100 begin "+
		"at impossible times") {
		t.Errorf("%+v: %s", r.Rows, r.Sentence())
	}
}

func TestLaunchesWithoutAnyRowOfADeviceAreNamed(t *testing.T) {
	host := func(all []event.Span) []event.Span {
		var kept []event.Span
		for _, s := range all {
			if s.Call.Layer == "runtime" {
				kept = append(kept, s)
			}
		}
		return kept
	}
	for name, c := range map[string]struct {
		change func([]event.Span) []event.Span
		want   int64
	}{
		"no device": {host, 200},
		"a device":  {same, 0},
		"recorded": {func(all []event.Span) []event.Span { // a recording of ours has no such rows
			all = host(all)
			for i := range all {
				all[i].End = event.EndExitSite
			}
			return all
		}, 0},
	} {
		_, r := checked(t, trace(c.change), nil)
		for _, check := range r.Checks {
			if check.Name == "no_work_of_devices" && (check.Count != c.want || (check.Severity == Warning) != (c.want > 0)) {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}

// A rank that a distributed process does not have is named: answers by rank leave it out.
func TestProcessesOfCollectivesWithoutARankAreNamed(t *testing.T) {
	ranks, rank := int32(2), int32(0)
	_, r := checked(t, trace(same), func(d *output.Dataset) error {
		return d.Write(&event.Batch{
			Processes: []event.Process{{ID: 1, PID: 1, Rank: &rank}, {ID: 2, PID: 2}, {ID: 3, PID: 3}},
			OpenCalls: []event.OpenCalls{{SeenNS: 1e15, Communicators: []event.Communicator{{PID: 1, Handle: 1, Runtime: "gloo", Ranks: &ranks},
				{PID: 2, Handle: 1, Runtime: "gloo", Ranks: &ranks}}}},
		})
	})
	for _, c := range r.Checks {
		if c.Name == "ranks_unknown" && (c.Count != 1 || c.Of != 2 || c.Severity != Warning) {
			t.Errorf("%+v", c)
		}
	}
}
