package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestKernelsAreChosenByVersionAndArchitecture(t *testing.T) {
	for _, c := range []struct {
		words string
		short bool
		want  string
	}{
		{"6.1", false, "6.1-amd64 6.1-arm64"},
		{"6.1-arm64, 7.0", true, "7.0-amd64 6.1-arm64"},
		{"", true, "6.1-amd64 6.19-amd64 6.1-arm64 7.3-arm64"},
		{"5.15", false, ""},
	} {
		var got []string
		for _, k := range choose(c.words, c.short) {
			got = append(got, k.name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q, short %v: %v, want %s", c.words, c.short, got, c.want)
		}
	}
}

const console = "[    1.0] noise\r\n@@ boot 6.1.0-56-cloud-amd64 x86_64\r\n@@ begin 0\r\n" +
	"=== RUN   TestX\r\n    loads_test.go:58: feature bpf_loop true\r\n    loads_test.go:93: program call_exit all 3275\r\n" +
	"    loads_test.go:93: program call_exit bpf_loop 3885\r\n--- PASS: TestX (9.0s)\r\nPASS\r\n@@ end 0 0\r\n@@ begin 1\r\nhalf"

func TestAConsoleIsReadBetweenItsMarks(t *testing.T) {
	b := readConsole(console, 2)
	if b.release != "6.1.0-56-cloud-amd64" || b.complete || !b.results[0].ended || b.results[1].ended || b.results[1].output != "half\n" {
		t.Fatalf("%+v", b)
	}
	f := &findings{features: map[string]bool{}, tests: map[string]tally{}}
	if err := readPrograms(f, b.results[0]); err != nil || !f.features["bpf_loop"] || len(f.programs) != 2 || f.programs[1] != (loaded{"call_exit", "bpf_loop", 3885}) {
		t.Errorf("%v, %+v", err, f)
	}
	if !readConsole(console+"\n@@ end 1 0\n@@ off\n", 2).complete {
		t.Error("it came to its end")
	}
}

func TestAChecksFailuresAreSeen(t *testing.T) {
	f := &findings{tests: map[string]tally{}}
	for output, r := range map[string]result{
		"--- FAIL: TestX (0.1s)\n": {code: 1, ended: true}, "--- PASS: TestX (0.1s)\n": {code: 2, ended: true}, "PASS\n": {ended: true}, "--- PASS: TestY (0.1s)\n": {},
	} {
		r.output = output
		if readTests(f, r) == nil {
			t.Errorf("%q, %+v is no failure", output, r)
		}
	}
	if readDoctor(f, result{output: "programs load   ok  with\nsampling programs load  degraded\n", ended: true}) == nil {
		t.Error("doctor without samples is a failure")
	}
	if err := readDoctor(f, result{output: "programs load   ok  with\nsampling programs load  ok\n", ended: true}); err != nil {
		t.Error(err)
	}
	if readRun(f, result{code: 3}) == nil || readRun(f, result{code: 5}) != nil {
		t.Error("run that is not permitted is a failure, and one that captures nothing is not")
	}
}

// The kernel wants headers of 110 characters and everything at multiples of four.
func TestAnArchiveIsPaddedAndMakesItsDirectories(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.entry("lib/x/y", modeFile|0o644, []byte("abc"))
	if err := a.end(); err != nil || b.Len()%4 != 0 {
		t.Fatalf("%v, %d bytes", err, b.Len())
	}
	text := b.String()
	for _, name := range []string{"usr\x00", "usr/lib\x00", "usr/lib/x\x00", "usr/lib/x/y\x00", "TRAILER!!!\x00"} {
		if strings.Count(text, name) == 0 {
			t.Errorf("no %q in it", name)
		}
	}
	if strings.Count(text, "070701") != 5 {
		t.Errorf("%d members", strings.Count(text, "070701"))
	}
}

func TestAnImageThatIsNoPackedKernelIsLeftAlone(t *testing.T) {
	if got, err := unpackImage([]byte("MZ no")); err != nil || string(got) != "MZ no" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := unpackImage(append([]byte("MZ\x00\x00zimg\xff\xff\x00\x00\xff\xff\x00\x00"), make([]byte, 80)...)); err == nil {
		t.Error("a torn one is an error")
	}
}
