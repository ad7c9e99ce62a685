package output

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Of tables that are published together the one that fails loses its file, and no other
// loses its own.
func TestWhatFailsCostsItsOwnTable(t *testing.T) {
	d := begin(t, Options{RotateEvery: time.Hour})
	if err := d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1, Kind: "attach", Source: "x", Detail: "y"}}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(&event.Batch{Samples: []event.Sample{{TSNS: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := d.flush(); err != nil {
		t.Fatal(err)
	}
	if err := d.writer.do(func() error {
		for _, g := range d.writer.growing {
			if g.name == "sample" {
				g.open.file.Close() // it can be neither written nor flushed
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if d.Rotate() == nil {
		t.Fatal("nothing failed")
	}
	_ = d.Close()
	for table, want := range map[string]int{"warning": 1, "sample": 0} {
		if rows := readTable(t, d.Dir(), table); len(rows) != want {
			t.Errorf("%d rows in %s, want %d", len(rows), table, want)
		}
	}
	for _, s := range d.Stats() {
		if s.Table == "warning" && (s.Rows != 1 || s.Files != 1) || s.Table == "sample" && (s.Rows != 0 || s.Files != 0) {
			t.Errorf("the statistics say %+v", s)
		}
	}
}

func TestRotationsOfALongRecordingAreRarer(t *testing.T) {
	o := Options{RotateEvery: 2 * time.Second, RotateShare: 0.01}
	for recorded, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 3 * time.Minute: 2 * time.Second, 20 * time.Minute: 12 * time.Second, 10 * time.Hour: time.Minute,
	} {
		if got := o.pause(recorded); got != want {
			t.Errorf("after %v: %v, want %v", recorded, got, want)
		}
	}
	if got := (Options{RotateEvery: time.Minute}).pause(time.Hour); got != time.Minute {
		t.Error(got)
	}
}
