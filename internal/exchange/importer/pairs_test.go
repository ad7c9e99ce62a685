package importer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// asPairs writes each event X of a trace's thread as a B and an E, as a writer would that
// knows no durations: in the order of time.
func asPairs(t *testing.T) string {
	t.Helper()
	const linear, addmm, launch = `"cat": "cpu_op", "name": "aten::linear", "pid": 7, "tid": 8`,
		`"cat": "cpu_op", "name": "aten::addmm", "pid": 7, "tid": 8`, `"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8`
	pairs := `{"ph": "B", ` + linear + `, "ts": 100.001, "args": {"External id": 1}},
{"ph": "B", ` + addmm +
		`, "ts": 110, "args": {"External id": 2, "Sequence number": 5, "Input Dims": [[5], [3, 4], [4, 5], [], []], "Input type": ["float", "float", "float", "Scalar", "Scalar"]}},
{"ph": "B", ` + launch + `, "ts": 112, "args": {"correlation": 77}},
{"ph": "E", "pid": 7, "tid": 8, "ts": 117},
{"ph": "E", "pid": 7, "tid": "8", "ts": 130, "name": "aten::addmm"},
{"ph": "E", "pid": 7, "tid": 8, "ts": 150.501},
`
	whole := regexp.MustCompile(
		`(?m)^\{"ph": "X", "cat": "cpu_op", "name": "aten::(linear|addmm)".*\n|^\{"ph": "X", "cat": "cuda_runtime".*\n`)
	if n := len(whole.FindAllString(small, -1)); n != 3 {
		t.Fatalf("%d events to write as pairs", n)
	}
	return pairs + strings.TrimLeft(whole.ReplaceAllString(small, ""), "\n")
}

// The same trace with its calls as pairs, with a byte order mark, and both, compressed.
func TestPairsAndAByteOrderMarkChangeNothing(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, byteOrderMark+trace(asPairs(t)))
	z.Close()
	const rows = `string_agg(concat(s.name, ' ', s.layer, ' ', s.category, ' ', s.ts_ns, '+', s.duration_ns, ' ', p.name, ' ', l.name, ' ', s.flops), chr(10) ORDER BY s.ts_ns, s.name)
		FROM span s LEFT JOIN span p ON p.span_id = s.parent_id LEFT JOIN span l ON l.span_id = s.launch_id`
	db, _ := importFiles(t, file(t, "t.json", trace(small)))
	want := one(t, db, "SELECT "+rows)
	for name, content := range map[string]string{
		"pairs": trace(asPairs(t)), "mark": byteOrderMark + trace(small), "both, packed": packed.String(),
	} {
		db, summary := importFiles(t, file(t, "t.json", content))
		if got := one(t, db, "SELECT "+rows); got != want || summary.Flows != 1 {
			t.Errorf("%s: %d flows\n%s, want\n%s", name, summary.Flows, got, want)
		}
		answers(t, db, map[string]string{"SELECT count(*) FROM warning WHERE source LIKE 'ph %'": "0"})
	}
}

// A pair whose one half is missing, or runs backwards, is counted, and takes no other's half.
func TestHalvesOfPairsAreCounted(t *testing.T) {
	db, _ := importFiles(t, file(t, "t.json", trace(`{"ph": "E", "pid": 7, "tid": 8, "ts": 90},
{"ph": "B", "cat": "cpu_op", "name": "aten::outer", "pid": 7, "tid": 8, "ts": 100},
{"ph": "B", "cat": "cpu_op", "name": "aten::lost", "pid": 7, "tid": 8, "ts": 101},
{"ph": "B", "cat": "cpu_op", "name": "aten::other", "pid": 7, "tid": 9, "ts": 102},
{"ph": "E", "name": "aten::none", "pid": 7, "tid": 8, "ts": 103},
{"ph": "E", "name": "aten::outer", "pid": 7, "tid": 8, "ts": 110},
{"ph": "E", "pid": 7, "tid": 9, "ts": 104.5},
{"ph": "B", "cat": "cpu_op", "name": "aten::backwards", "pid": 7, "tid": 9, "ts": 120},
{"ph": "E", "pid": 7, "tid": 9, "ts": 119},
{"ph": "B", "cat": "cpu_op", "name": "aten::unended", "pid": 7, "tid": 9, "ts": 130}`)))
	answers(t, db, map[string]string{
		"SELECT string_agg(name || duration_ns, ' ' ORDER BY name) FROM span":      "aten::other2500 aten::outer10000",
		"SELECT count FROM warning WHERE source = '" + beginAlone + "'":            "3", // lost, backwards, unended
		"SELECT count FROM warning WHERE source = '" + endAlone + "'":              "3", // the first, none's, the backward one
		"SELECT count(*) FROM warning WHERE kind = 'import' AND source LIKE 'ph%'": "2",
	})
}

func TestOpenPairsAreBounded(t *testing.T) {
	var p pairs
	for i := range maxOpen {
		if !p.begin([2]int64{int64(i % 7), 1}, &fields{ts: []byte("1")}) {
			t.Fatalf("refused at %d", i)
		}
	}
	if p.begin([2]int64{1, 1}, &fields{ts: []byte("1")}) {
		t.Error("one more is kept")
	}
	if _, _, ok := p.end([2]int64{1, 1}, &fields{ts: []byte("2")}); !ok || p.count != maxOpen-1 {
		t.Errorf("%d are open", p.count)
	}
}
