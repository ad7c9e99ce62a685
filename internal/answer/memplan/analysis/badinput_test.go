package analysis

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestWhatIsMissingIsSaid: events that were lost, frees of what was not seen allocated.
func TestWhatIsMissingIsSaid(t *testing.T) {
	r := newRecording(t)
	r.live[5<<40] = 4096
	r.alloc(0, 0, 64)
	r.free(5 << 40)
	r.must(r.dataset.Write(&event.Batch{Warnings: []event.Warning{{TSNS: r.ns, Kind: "lost", Source: "ring_buffer", Count: 7}}}))
	r.must(r.dataset.Close())
	m, err := Load(t.Context(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if said := strings.Join(m.Warnings, "\n"); !strings.Contains(said, "lost while recording: 7 ring_buffer") {
		t.Errorf("7 events were lost: %q", said)
	}
	// The freed block was there from before the beginning on.
	if a := m.Arenas[0]; a.FreedUnknown != 1 || a.PeakBytes != 64+4096 || a.EndBytes != 64 {
		t.Errorf("%d frees of unknown blocks, peak %d, %d at the end", a.FreedUnknown, a.PeakBytes, a.EndBytes)
	}
}

// TestDevicesHaveAddressesOfTheirOwn: the same one on two GPUs is two blocks.
func TestDevicesHaveAddressesOfTheirOwn(t *testing.T) {
	r := newRecording(t)
	for device := range int32(2) {
		bytes := int64(1000) << device
		for _, action := range []string{"alloc", "free"} {
			r.ns += 1000
			r.must(r.dataset.Write(&event.Batch{Memory: []event.Memory{{TSNS: r.ns, PID: pid, TID: pid, Space: "device", DeviceID: &device,
				Level:  "allocator",
				Action: action, Address: 1 << 33, Bytes: &bytes, Weight: 1}}}))
			if device == 0 {
				break // it lives while the other's is made
			}
		}
	}
	r.must(r.dataset.Close())
	m, err := Load(t.Context(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Arenas) != 2 || m.Arenas[0].Reused+m.Arenas[1].Reused != 0 {
		t.Fatalf("%d arenas: %+v", len(m.Arenas), m.Arenas)
	}
	for _, a := range m.Arenas {
		if want := int64(1000) << *a.Device; a.PeakBytes != want || a.FreedUnknown != 0 {
			t.Errorf("device %d: peak %d, want %d; %d frees of unknown blocks", *a.Device, a.PeakBytes, want, a.FreedUnknown)
		}
	}
}

// TestBrokenSnapshotsAreNotLoaded, nor is what would run if Python read it.
func TestBrokenSnapshotsAreNotLoaded(t *testing.T) {
	for name, contents := range map[string]string{
		"nothing":         "",
		"cut JSON":        `{"device_traces":[[{"action":"alloc","addr":1,`,
		"a negative size": `{"device_traces":[[{"action":"alloc","addr":1,"size":-4}]]}`,
		"a program":       "\x80\x04cos\nsystem\nX\x04\x00\x00\x00trueR.",
		"no list at all":  "\x80\x04K\x05.",
	} {
		path := filepath.Join(t.TempDir(), "snapshot.pickle")
		if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := Load(t.Context(), path, 0); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestThePageStaysSmall however many lines hold and grow: a browser opens it at once.
func TestThePageStaysSmall(t *testing.T) {
	r := newRecording(t)
	const lines = 300
	for line := range int64(lines) {
		r.stack(line+1, line+1, fmt.Sprintf("f%d", line))
	}
	for range 12 {
		for line := range int64(lines) {
			r.alloc(line+1, 0, 512*(line+1))
		}
	}
	r.must(r.dataset.Close())
	m, err := Load(t.Context(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Arenas[0].Holders.ByLine) != lines || len(m.Arenas[0].Growth) < lines/2 {
		t.Fatalf("%d lines hold, %d grow: the test tells nothing", len(m.Arenas[0].Holders.ByLine), len(m.Arenas[0].Growth))
	}
	var page bytes.Buffer
	if err := m.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 200_000 || strings.Contains(page.String(), "<script") {
		t.Errorf("the page has %d bytes", page.Len())
	}
	if !strings.Contains(page.String(), fmt.Sprintf("%d more", len(m.Arenas[0].Growth)-pageRows)) {
		t.Error("the page does not say how many lines it leaves out")
	}
}
