package annotation

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

func TestNotesStayAndGo(t *testing.T) {
	j := scripted.New()
	j.Op("aten::mm", 1000)
	dir := scripted.Write(t, j)
	open := func() *dataset.DB {
		db, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	at := int64(5)
	for i, text := range []string{"first ' \x1b", "second"} {
		n, err := Add(t.Context(), open(), Note{Text: text, TSNS: &at})
		if err != nil || n.ID != int64(i+1) {
			t.Fatalf("%+v %v", n, err)
		}
	}
	if err := Remove(t.Context(), open(), 1); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), open(), 1); !errors.Is(err, ErrNone) {
		t.Errorf("removed twice: %v", err)
	}
	all, err := List(t.Context(), open())
	if err != nil || len(all) != 1 || all[0].ID != 2 || all[0].Text != "second" || *all[0].TSNS != 5 || all[0].Step != nil {
		t.Errorf("%+v %v", all, err)
	}
}
