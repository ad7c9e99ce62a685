package snapshot

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
)

// ranOut are three blocks of 4 MiB, one of them freed, and a request for 900 MiB with 3 MiB left on the device.
const ranOut = `{"segments": [], "device_traces": [[], [
 {"action": "alloc", "addr": 4096, "size": 4194304, "stream": 0, "time_us": 10, "frames": [{"filename": "/job/a.py", "line": 3, "name": "f"}]},
 {"action": "alloc", "addr": 8392704, "size": 4194304, "stream": 0, "time_us": 20, "frames": []},
 {"action": "alloc", "addr": 16781312, "size": 4194304, "stream": 0, "time_us": 30, "frames": []},
 {"action": "free_completed", "addr": 4096, "size": 4194304, "stream": 0, "time_us": 40, "frames": []},
 {"action": "oom", "addr": 0, "size": 943718400, "device_free": 3145728, "stream": 0, "time_us": 50, "frames": [{"filename": "/job/a.py", "line": 77, "name": "g"}]}]],
 "allocator_settings": {}}`

// pickled writes a text of JSON as Python's pickle does; ordered makes the outermost a collections.OrderedDict.
func pickled(t *testing.T, text string, protocol int, ordered bool) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if protocol >= 2 {
		b.WriteString("\x80" + string(rune(protocol)))
	}
	empty := map[bool][2]string{true: {"}", "]"}, false: {"(d", "(l"}}[protocol > 0]
	var write func(v any, top bool)
	write = func(v any, top bool) {
		switch v := v.(type) {
		case map[string]any:
			switch {
			case !top || !ordered:
				b.WriteString(empty[0])
			case protocol < 4:
				b.WriteString("ccollections\nOrderedDict\n)R")
			default:
				b.WriteString("\x8c\x0bcollections\x8c\x0bOrderedDict\x93)R")
			}
			if protocol > 0 {
				b.WriteString("(")
			}
			for _, key := range []string{"segments", "device_traces", "allocator_settings", "action", "addr", "size", "device_free", "time_us",
				"frames", "filename", "line", "name"} {
				if item, is := v[key]; is {
					fmt.Fprintf(&b, "V%s\n", key)
					write(item, false)
					if protocol == 0 {
						b.WriteString("s")
					}
				}
			}
			if protocol > 0 {
				b.WriteString("u")
			}
		case []any:
			b.WriteString(empty[1])
			if protocol > 0 {
				b.WriteString("(")
			}
			for _, item := range v {
				write(item, false)
				if protocol == 0 {
					b.WriteString("a")
				}
			}
			if protocol > 0 {
				b.WriteString("e")
			}
		case float64:
			fmt.Fprintf(&b, "I%d\n", int64(v))
		case string:
			fmt.Fprintf(&b, "V%s\n", v)
		}
	}
	write(v, true)
	return b.String() + "."
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func archived(t *testing.T, member, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(member)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSnapshotsOfAllFormsAreTheSame(t *testing.T) {
	forms := map[string]string{
		"JSON":                       ranOut,
		"JSON in gzip":               zipped(t, ranOut),
		"gzip of gzip":               zipped(t, zipped(t, pickled(t, ranOut, 4, false))),
		"torch.save":                 archived(t, "archive/data.pkl", pickled(t, ranOut, 2, false)),
		"torch.save, another name":   archived(t, "snapshot/data.pkl", pickled(t, ranOut, 2, false)),
		"an ordered dictionary":      pickled(t, ranOut, 2, true),
		"an ordered one of later on": pickled(t, ranOut, 4, true),
	}
	for protocol := range 6 {
		forms[fmt.Sprint("protocol ", protocol)] = pickled(t, ranOut, protocol, false)
		forms[fmt.Sprint("protocol ", protocol, " in gzip")] = zipped(t, pickled(t, ranOut, protocol, false))
	}
	for name, content := range forms {
		path := written(t, content)
		if !Is(path) {
			t.Errorf("%s is not recognised", name)
		}
		s, err := ReadFile(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l := blocks.Build(s.Arenas, s.Events)[0]
		if s.Cut || l.Peak != 12<<20 || len(s.Shortages) != 1 || len(l.Shortages) != 1 || l.Shortages[0].Live != 8<<20 {
			t.Errorf("%s: peak %d, %+v, %+v", name, l.Peak, s.Shortages, l.Shortages)
			continue
		}
		short := s.Shortages[0]
		if short.Device != 1 || short.Asked != 900<<20 || short.Free != 3<<20 || short.NS != 50_000 ||
			s.Paths[short.Path].Line() != "/job/a.py:77 (g)" {
			t.Errorf("%s: %+v", name, short)
		}
	}
}

// Of a pickle that is cut, what is there counts; it never panics.
func TestSnapshotsThatAreCutAreReadUpToThere(t *testing.T) {
	for _, protocol := range []int{0, 1, 2, 4} {
		whole := pickled(t, ranOut, protocol, false)
		most := 0
		for length := range len(whole) {
			s, err := Read(strings.NewReader(whole[:length]))
			if err != nil {
				continue
			}
			if !s.Cut || len(s.Events) < most {
				t.Fatalf("protocol %d, %d bytes: %d events after %d, cut %t", protocol, length, len(s.Events), most, s.Cut)
			}
			most = len(s.Events)
		}
		if most != 5 {
			t.Errorf("protocol %d: %d events at the most", protocol, most)
		}
	}
	packed := zipped(t, pickled(t, ranOut, 4, false))
	if s, err := Read(strings.NewReader(packed[:len(packed)-4])); err != nil || len(s.Events) != 5 {
		t.Errorf("gzip without its end: %v", err)
	}
}

func TestOtherFilesAreToldInASentence(t *testing.T) {
	for content, want := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n": "git lfs pull",
		`{"schemaVersion": 1, "traceEvents": []}`:                             "ebpfprof import",
		"<!DOCTYPE html>":                             "web page",
		"[[1, 2], [3, 4]]":                            "memory timeline",
		archived(t, "x/readme.txt", "hello"):          "no data.pkl",
		archived(t, "archive/data.pkl", ranOut)[:60]:  "cut off",
		ranOut[:200]:                                  "cut off",
		zipped(t, strings.Repeat("no pickle ", 9)):    "neither a pickle nor JSON",
		zipped(t, ranOut)[:12]:                        "cut off",
		"\x80\x04\x8c\x02os\x8c\x06system\x93)R.":     "STACK_GLOBAL",
		"\x80\x02ccollections\nOrderedDict\n(I1\ntR.": "REDUCE",
		"\x80\x02ccollections\ndefaultdict\n)R.":      "GLOBAL",
	} {
		_, err := ReadFile(written(t, content))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.30q: %v, want %q", content, err, want)
		}
	}
}
