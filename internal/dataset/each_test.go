package dataset_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// Each hands over DuckDB's own types, stops where it is told to, and when it is
// cancelled; the connection serves on afterwards.
func TestEachHandsOverRowsAndStops(t *testing.T) {
	j := scripted.New()
	j.Op("aten::mm", 1000)
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	enough := errors.New("enough")
	rows := 0
	err = db.Each(t.Context(), "SELECT range, 2::INTEGER, 0.5::DOUBLE, 'x', NULL FROM range(10)", func(v []driver.Value) error {
		rows++
		if v[0] != int64(rows-1) || v[1] != int32(2) || v[2] != 0.5 || v[3] != "x" || v[4] != nil {
			t.Errorf("%#v", v)
		}
		if rows == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || rows != 3 {
		t.Errorf("%d rows, %v", rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rows = 0
	err = db.Each(ctx, "SELECT range FROM range(10000000)", func([]driver.Value) error {
		if rows++; rows == 10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || rows > 1_000_000 {
		t.Errorf("cancelled: %d rows, %v", rows, err)
	}
	if err := db.Each(t.Context(), "SELECT nothing", nil); err == nil {
		t.Error("a query that is none")
	}
	var n int
	if err := db.Row(t.Context(), "SELECT count(*) FROM span", nil, &n); err != nil || n != 1 {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}
