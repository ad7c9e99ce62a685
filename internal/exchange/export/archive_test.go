package export

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestAnArchiveHasEachRankOnce: slices out are spans in, over all of its traces.
func TestAnArchiveHasEachRankOnce(t *testing.T) {
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var spans []event.Span
	for id := range int64(60) {
		pid := int32(10 + id%3)
		spans = append(spans, event.Span{ID: id + 1, StartNS: 1e18 + id*100, DurationNS: 50, PID: pid, TID: pid, Weight: 1, SequenceNumber: -1,
			Call: &event.Call{Layer: "op", Name: "aten::mm"}})
	}
	zero, one := int32(0), int32(1)
	err = errors.Join(d.Session(event.Recording{ID: "s", Host: "node"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 10, Command: "train", Rank: &zero}}}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 2, PID: 11, Command: "train", Rank: &one}}}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 3, PID: 12, Command: "loader"}}}), d.Write(&event.Batch{Spans: spans}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	r, err := WriteArchive(t.Context(), opened(t, d.Dir()), &archive, Options{})
	if err != nil || r.Spans != 60 || r.Slices != 60 || len(r.LeftOut) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	var names []string
	var said struct {
		Manifest manifest `json:"perfetto_manifest"`
	}
	in := tar.NewReader(&archive)
	for {
		header, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		contents, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if names = append(names, header.Name); len(names) == 1 {
			if err := json.Unmarshal(contents, &said); err != nil {
				t.Fatal(err)
			}
			continue
		}
		path := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		var got struct{ Slices int64 }
		if err := json.Unmarshal([]byte(python(t, "slices.py", path)), &got); err != nil || got.Slices != 20 {
			t.Errorf("%s: %+v, %v", header.Name, got, err)
		}
	}
	if got := strings.Join(names, " "); got != "perfetto_manifest.json rank-00000.pftrace rank-00001.pftrace no-rank.pftrace" {
		t.Error(got)
	}
	m := said.Manifest
	if m.Version != 1 || m.Time.File != names[1] || len(m.Files) != 3 || m.Files[0].Clocks != nil || m.Files[1].Clocks.Is.File != names[1] ||
		m.Files[1].Clocks.Offset != 0 || m.Files[2].Machine["name"] != "node" {
		t.Errorf("%+v", m)
	}
}

// TestRecordingsOfOneBootStandOnItsClock, whatever the hosts' time was set to between them.
func TestRecordingsOfOneBootStandOnItsClock(t *testing.T) {
	rank := func(n int32) sql.NullInt32 { return sql.NullInt32{Int32: n, Valid: true} }
	members := []member{
		{session: "a", rank: rank(0), host: "x", boot: "1", offset: 1000}, {session: "b", rank: rank(1), host: "x", boot: "1", offset: 1700},
		{session: "c", rank: rank(2), host: "y", boot: "2", offset: 5000},
	}
	files := manifestOf(members).Files
	// At the same instant b says 700 more than a.
	if files[1].Clocks.Offset != -700 || files[2].Clocks.Offset != 0 {
		t.Errorf("%+v, %+v", files[1].Clocks, files[2].Clocks)
	}
	if _, measured := members[1].apart(members[0]); !measured {
		t.Error("one boot's clocks are held against each other")
	}
	if _, measured := members[2].apart(members[0]); measured {
		t.Error("the clock of another host was not compared with the first")
	}
}
