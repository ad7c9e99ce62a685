package peaks

import (
	"context"
	"errors"
	"testing"
)

// Any processor that runs this does a billion operations and moves a gigabyte a
// second, and none a petabyte.
func TestMeasuredPeaksArePossible(t *testing.T) {
	m, err := Measure(t.Context(), "test", 1)
	if err != nil || m.FLOPs < 1e8 || m.FLOPs > 1e13 || m.Bytes < 1e8 || m.Bytes > 1e13 || m.With == "" {
		t.Errorf("%+v %v", m, err)
	}
	if p := m.Peak(); p.FLOPs["fp32"] != m.FLOPs || p.Bytes != m.Bytes || m.Ridge() != m.FLOPs/m.Bytes {
		t.Errorf("%+v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, "test", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAMeasurementIsFoundByItsProcessor(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, ok := Saved("x"); ok {
		t.Error("found before it was saved")
	}
	if err := (Measured{Processor: "x", FLOPs: 1, Bytes: 2}).Save(); err != nil {
		t.Fatal(err)
	}
	if m, ok := Saved("x"); !ok || m.Bytes != 2 {
		t.Errorf("%+v", m)
	}
	if _, ok := Saved("y"); ok {
		t.Error("found another's")
	}
}
