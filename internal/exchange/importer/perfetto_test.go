package importer

import (
	"bytes"
	"compress/zlib"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// proto is a message: numbers as varints, texts and messages as bytes; a negative id is a fixed 64-bit number.
func proto(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		id := pairs[i].(int)
		switch v := pairs[i+1].(type) {
		case int:
			if id < 0 {
				b = protowire.AppendFixed64(protowire.AppendTag(b, protowire.Number(-id), protowire.Fixed64Type), uint64(v))
				continue
			}
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(id), protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, protowire.Number(id), protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(id), protowire.BytesType), v)
		}
	}
	return b
}

// pftrace is a file of packets, each a list of fields.
func pftrace(t *testing.T, packets ...[]byte) string {
	t.Helper()
	var b []byte
	for _, p := range packets {
		b = append(b, proto(1, p)...)
	}
	path := filepath.Join(t.TempDir(), "job.pftrace")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// rocmPackets are what rocprofv3 writes of ten launches: names by number, a thread and a queue that is a track of its
// process, times of CLOCK_BOOTTIME that are a day and a second behind the wall clock.
func rocmPackets() [][]byte {
	const day = 86_400_000_000_000
	packets := [][]byte{
		proto(10, 7, 13, 1, 6, proto(1, proto(1, 6, 2, 1_000), 1, proto(1, 1, 2, day+1_000))),
		proto(10, 7, 60, proto(1, 100, 3, proto(1, 4242, 6, "python3"))),
		proto(10, 7, 60, proto(1, 101, 5, 100, 4, proto(1, 4242, 2, 4243, 5, "trainer"))),
		proto(10, 7, 60, proto(1, 102, 5, 100, 2, "AGENT [4] QUEUE [1] TYPE [GPU]")),
		proto(10, 7, 60, proto(1, 103, 5, 100, 2, "memory", 8, proto(3, 3))),
		proto(10, 7, 12, proto(1, proto(1, 1, 2, "hip_api"), 1, proto(1, 2, 2, "kernel_dispatch"), 2, proto(1, 1, 2, "hipLaunchKernel"),
			2, proto(1, 2, 2, "gemm(float*)"), 3, proto(1, 1, 2, "corr_id"))),
	}
	for i := range 10 {
		at := 1_000_000 * (i + 1)
		packets = append(packets,
			proto(10, 7, 8, at, 11, proto(9, 1, 11, 101, 3, 1, 10, 1, 4, proto(1, 1, 4, i+1))),
			proto(10, 7, 8, at+5_000, 11, proto(9, 2, 11, 101)),
			proto(10, 7, 8, at+10_000, 11, proto(9, 1, 11, 102, 3, 2, 10, 2, 4, proto(1, 1, 4, i+1))),
			proto(10, 7, 8, at+310_001, 11, proto(9, 2, 11, 102)),
			proto(10, 7, 8, at+20_000, 11, proto(9, 4, 11, 103, 30, i)),
		)
	}
	return packets
}

var rocmPacketFigures = map[string]string{
	"SELECT concat_ws(' ', count(*), sum(duration_ns), count(launch_id), any_value(name), any_value(category), " +
		"any_value(device_id), any_value(pid)) FROM span " +
		"WHERE layer = 'device'": "10 3000010 10 gemm(float*) kernel 4 4242",
	"SELECT concat_ws(' ', count(*), sum(duration_ns), any_value(pid), any_value(tid), min(ts_ns)) FROM span " +
		"WHERE layer = 'runtime'": "10 50000 4242 4243 86400001000000",
	"SELECT concat_ws(' ', command) FROM process": "python3",
}

func TestATraceOfPerfettoHasItsSlices(t *testing.T) {
	packets := rocmPackets()
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	for _, p := range packets[6:] {
		z.Write(proto(1, p))
	}
	z.Close()
	for name, path := range map[string]string{
		"packets":        pftrace(t, packets...),
		"packed packets": pftrace(t, append(packets[:6:6], proto(50, packed.Bytes()))...),
	} {
		db, summary := importFiles(t, path)
		if len(summary.Warnings) != 0 {
			t.Errorf("%s: %v", name, summary.Warnings)
		}
		answers(t, db, rocmPacketFigures)
	}
}

// Flows say what was launched where nothing else does, and a clock of a sequence's own counts from packet to packet.
func TestFlowsAndClocksOfPerfetto(t *testing.T) {
	packets := [][]byte{
		proto(10, 3, 13, 1, 59, proto(58, 64, 11, proto(11, 1)), 6, proto(1, proto(1, 64, 2, 1_000, 3, 1, 4, 1_000), 1,
			proto(1, 1, 2, 5_000_000_000))),
		proto(10, 3, 8, 0, 60, proto(1, 1, 4, proto(1, 9, 2, 9, 5, "main"))),
		proto(10, 3, 8, 0, 60, proto(1, 2, 2, "queue", 5, 1)),
	}
	for i := range 9 {
		packets = append(packets,
			proto(10, 3, 8, 1_000, 11, proto(9, 1, 22, "hip_api", 23, "hipLaunchKernel", -47, 50+i)),
			proto(10, 3, 8, 100, 11, proto(9, 2)),
			proto(10, 3, 8, 100, 11, proto(9, 1, 11, 2, 22, "kernel_dispatch", 23, "k", -48, 50+i)),
			proto(10, 3, 8, 300, 11, proto(9, 2, 11, 2)))
	}
	db, _ := importFiles(t, pftrace(t, packets...))
	answers(t, db, map[string]string{
		"SELECT concat_ws(' ', count(*), sum(duration_ns), count(launch_id)) FROM span WHERE layer = 'device'": "9 2700000 9",
		"SELECT concat_ws(' ', count(*), sum(duration_ns), min(ts_ns)) FROM span WHERE layer = 'runtime'":      "9 900000 5001000000",
		"SELECT count(*) FROM span d JOIN span l ON l.span_id = d.launch_id AND d.ts_ns = l.ts_ns + 200000":    "9",
	})
}

func TestATraceOfPerfettoThatIsDamagedIsASentence(t *testing.T) {
	whole, err := os.ReadFile(pftrace(t, rocmPackets()...))
	if err != nil {
		t.Fatal(err)
	}
	db, summary := importFiles(t, file(t, "cut.pftrace", string(whole[:len(whole)-200])))
	answers(t, db, map[string]string{"SELECT count(*) > 5 FROM span WHERE layer = 'device'": "true"})
	if len(summary.Warnings) == 0 || !strings.Contains(summary.Warnings[0].Detail, "ends in the middle") {
		t.Errorf("a cut file: %v", summary.Warnings)
	}
	for name, c := range map[string]struct {
		content string
		says    string
	}{
		"another packet":          {string(whole) + "\xff\xff", "no packet of Perfetto's at byte"},
		"a packet that is none":   {string(whole) + string(proto(1, []byte{0x08})), "a packet of Perfetto's at byte"},
		"packed what is packed":   {string(whole) + string(proto(1, proto(50, []byte("no")))), "a packet of Perfetto's at byte"},
		"a length without an end": {string(whole) + "\x0a" + strings.Repeat("\xff", 11), "ten bytes"},
	} {
		_, err := Import(t.Context(), []string{file(t, "bad.pftrace", c.content)}, filepath.Join(t.TempDir(), "d"), Options{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
}

// JSON after an empty line is no packet, whatever its first bytes would say.
func TestALineOfTextIsNoPacket(t *testing.T) {
	for _, text := range []string{"\n{\n  \"traceEvents\": []}", "\n[\n{}]", "\n\n\n\n", "\n{\"schemaVersion\": 1}"} {
		if isPerfetto([]byte(text)) {
			t.Errorf("%q", text)
		}
	}
}

func FuzzPerfetto(f *testing.F) {
	for _, p := range rocmPackets()[:12] {
		f.Add(proto(1, p))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		p := newPerfettoText(bytes.NewReader(content))
		var b [4096]byte
		for {
			if _, err := p.Read(b[:]); err != nil {
				return
			}
		}
	})
}
