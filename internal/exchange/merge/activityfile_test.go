package merge

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// kernelChunk is a file with one chunk: a reading of the clocks, a kernel's name and the kernel, in the format of
// internal/record/injection/cupti/records.h.
func kernelChunk(t *testing.T, pid int32, name string) string {
	t.Helper()
	word := func(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	record := func(kind uint64, size int) []byte {
		b := make([]byte, size)
		word(b, 0, kind|uint64(size)<<16)
		return b
	}
	clock := record(2, 32)
	word(clock, 8, 1_000)
	word(clock, 16, 1_000)
	word(clock, 24, 1_000)
	named := record(3, 24+(len(name)+7)/8*8)
	word(named, 8, 77)
	word(named, 16, uint64(len(name)))
	copy(named[24:], name)
	kernel := record(4, 88)
	word(kernel, 8, 2_000)
	word(kernel, 16, 3_000)
	word(kernel, 24, 77)
	bytes := make([]byte, 32)
	binary.LittleEndian.PutUint32(bytes, 0x31435045)
	binary.LittleEndian.PutUint32(bytes[8:], 3)
	for _, r := range [][]byte{clock, named, kernel} {
		bytes = append(bytes, r...)
	}
	binary.LittleEndian.PutUint32(bytes[4:], uint32(len(bytes)))
	c := event.ActivityChunk{PID: pid, Bytes: bytes}
	path := filepath.Join(t.TempDir(), "chunks")
	if err := os.WriteFile(path, c.AppendTo(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A job names its kernels: what a redacted recording leaves out of names it leaves out of these too.
func TestKernelsOfARedactedRecordingHaveNoDirectories(t *testing.T) {
	for redacted, want := range map[bool]string{true: "fused model.py", false: "fused /home/alice/model.py"} {
		j := scripted.New()
		j.Op("aten::mm", 9_000, func() {})
		recording := scripted.Write(t, j)
		chunks := kernelChunk(t, 100, "fused /home/alice/model.py")
		all, sentences, err := Activities(t.Context(), recording, chunks, Options{Redact: redacted})
		if err != nil || len(all) != 1 {
			t.Fatal(all, sentences, err)
		}
		db, err := dataset.Open(recording)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var name string
		if err := db.Row(t.Context(), "SELECT name FROM span WHERE layer = 'device'", nil, &name); err != nil {
			t.Fatal(err)
		}
		if name != want {
			t.Errorf("redacted %t: %q, want %q", redacted, name, want)
		}
	}
}

// Rows of devices whose calls were lost, and what is said of them, are in the recording's time.
func TestRowsWithoutACallHaveAWindow(t *testing.T) {
	j := scripted.New()
	j.Op("aten::mm", 9_000, func() {})
	recording := scripted.Write(t, j)
	db, err := dataset.Open(recording)
	if err != nil {
		t.Fatal(err)
	}
	var offset int64
	if err := db.Row(t.Context(), "SELECT clock_offset_ns FROM session", nil, &offset); err != nil {
		t.Fatal(err)
	}
	db.Close()
	all, sentences, err := Activities(t.Context(), recording, kernelChunk(t, 100, "gemm"), Options{})
	if err != nil || len(all) != 1 || all[0].StartNS != 2_000+offset || all[0].EndNS != 3_000+offset {
		t.Errorf("%+v, %q, %v", all, sentences, err)
	}
}
