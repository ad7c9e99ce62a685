package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		{"6.1-arm64, 7.0", true, "6.1-arm64 7.0-amd64"},
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
	f := &findings{Features: map[string]bool{}, Tests: map[string]tally{}}
	if err := readPrograms(f, b.results[0]); err != nil || !f.Features["bpf_loop"] || len(f.Programs) != 2 ||
		f.Programs[1] != (loaded{"call_exit", "bpf_loop", 3885}) {
		t.Errorf("%v, %+v", err, f)
	}
	if !readConsole(console+"\n@@ end 1 0\n@@ off\n", 2).complete {
		t.Error("it came to its end")
	}
}

func TestAChecksFailuresAreSeen(t *testing.T) {
	f := &findings{Tests: map[string]tally{}}
	for output, r := range map[string]result{
		"--- FAIL: TestX (0.1s)\n": {code: 1, ended: true}, "--- PASS: TestX (0.1s)\n": {code: 2, ended: true}, "PASS\n": {ended: true},
		"--- PASS: TestY (0.1s)\n": {},
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
	if readRun(f, result{code: exitNotStarted}) == nil || readRun(f, result{}) != nil {
		t.Error("a run that does not start is a failure, and one that captures nothing is not")
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

const withoutOutput = "bpf_loop  degraded  it (switched off by EBPFPROF_WITHOUT)\nprograms load  ok  x\nsampling programs load  ok  x\n" +
	"    stubs_test.go:290: cuda: %d of 302 calls recorded\n--- PASS: TestX (1s)\nwithout: 0 0 0\n"

func TestAKernelWithoutAFeatureIsReadOrRefused(t *testing.T) {
	f := newFindings(kernels[0], true)
	if err := f.readWithout("bpf_loop", result{output: fmt.Sprintf(withoutOutput, 302), ended: true}); err != nil || !f.Without[0].Loads {
		t.Errorf("%v, %+v", err, f.Without)
	}
	if f.readWithout("bpf_loop", result{output: fmt.Sprintf(withoutOutput, 301), ended: true}) == nil {
		t.Error("a call that was not recorded is a failure")
	}
	if f.readWithout("bpf_loop", result{output: "half", ended: false}) == nil {
		t.Error("what did not end is a failure")
	}
	refused := "this kernel runs probe programs on per-CPU private stacks\nwithout: 4 125 0\n"
	if err := f.readWithout("preempt_guard", result{output: refused, ended: true}); err != nil || !f.Without[len(f.Without)-1].Refused {
		t.Errorf("%v, %+v", err, f.Without)
	}
	if f.readWithout("preempt_guard", result{output: strings.Replace(refused, "4 125", "4 0", 1), ended: true}) == nil {
		t.Error("that doctor and run do not agree is a failure")
	}
}

func TestWhatWasNotDoneAgainStaysAsItWasFound(t *testing.T) {
	before := &findings{
		Date:  "2026-11-01",
		Codes: map[string]int{"doctor": 0, "OpenCL on PoCL": 1}, Tests: map[string]tally{"OpenCL on PoCL": {Failed: 1}},
		Counts: []count{{"opencl", 97, 98}, {"cuda", 302, 302}}, Failures: []string{"OpenCL on PoCL: failed: TestX"},
		Features: map[string]bool{"btf": true},
	}
	now := newFindings(kernels[0], true)
	now.Codes["OpenCL on PoCL"], now.Tests["OpenCL on PoCL"] = 0, tally{Passed: 2}
	now.Counts = []count{{"opencl", 98, 98}}
	now.inherit(before, func(check string) bool { return check == "OpenCL on PoCL" })
	if len(now.Failures) != 0 || now.Tests["OpenCL on PoCL"].Passed != 2 || !now.Features["btf"] || len(now.Codes) != 2 {
		t.Errorf("%+v", now)
	}
	if now.cell(check{name: "OpenCL on PoCL"}) != "2" || now.cell(check{name: "doctor"}) != "ok (exit code 0) (2026-11-01)" {
		t.Errorf("dates: %q", now.Dates)
	}
	if !slices.Equal(now.Counts, []count{{"opencl", 98, 98}, {"cuda", 302, 302}}) {
		t.Errorf("%+v", now.Counts)
	}
	if k := kernels[1]; len((&suite{long: true, only: []string{"without"}}).of(k)) != len(k.without) {
		t.Error("other checks than those that were asked for")
	}
}

func TestThePageIsOfWhatWasFound(t *testing.T) {
	all, err := kept("../../../docs/kernels.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d kernels: %v", len(all), err)
	}
	path := filepath.Join(t.TempDir(), "kernels.md")
	if err := writePage(path, all); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Error("docs/kernels.md is another: go run ./internal/dev/matrix -page")
	}
}

func TestWhatWasFoundIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	other := newFindings(kernels[1], true)
	if err := other.keep(path); err != nil {
		t.Fatal(err)
	}
	f := newFindings(kernels[0], true)
	f.Counts = []count{{"cuda", 302, 302}}
	if err := f.keep(path); err != nil {
		t.Fatal(err)
	}
	all, err := kept(path)
	if err != nil || len(all) != 2 || all[1].Kernel != kernels[1].name || all[0].Kernel != kernels[0].name || !slices.Equal(all[0].Counts,
		f.Counts) {
		t.Errorf("%+v, %v", all, err)
	}
}
