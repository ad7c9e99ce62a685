package python

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// The walk of bpf/python.h is compiled for user space here, with the address
// sanitizer, and runs over recorded or made-up memory: no kernel, no root.

// replayer compiles testdata/native/pythonwalk.c.
func replayer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pythonwalk")
	gcc := exec.Command("gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unknown-pragmas", "-Werror",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", program, "../../testdata/native/pythonwalk.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// replayed is one line of what pythonwalk prints.
type replayed struct {
	failing, reads int
	outcome        string
	holdsGIL, inGC int
	cold, entering int
	frames         []bpf.PythonWalkPythonFrame
	anchors        []uint64
	ends           []int
}

func replay(t *testing.T, program string, arguments ...string) []replayed {
	t.Helper()
	cmd := exec.Command(program, arguments...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []replayed
	for line := range strings.Lines(string(out)) {
		all = append(all, parseReplayed(t, line))
	}
	compareStanding(t, arguments, &all[0])
	return all
}

func parseReplayed(t *testing.T, line string) replayed {
	t.Helper()
	var r replayed
	var outcome Outcome
	head, segments, _ := strings.Cut(line, " /")
	words := strings.Fields(head)
	if _, err := fmt.Sscan(strings.Join(words[:7], " "), &r.failing, &r.reads, &outcome, &r.holdsGIL, &r.inGC, &r.cold,
		&r.entering); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	r.outcome = outcome.Name()
	for _, word := range words[7:] {
		var f bpf.PythonWalkPythonFrame
		if _, err := fmt.Sscanf(word, "%x:%x:%d", &f.Code, &f.Checksum, &f.Instruction); err != nil {
			t.Fatalf("%v: %s", err, word)
		}
		r.frames = append(r.frames, f)
	}
	for _, word := range strings.Fields(segments) {
		var anchor uint64
		var end int
		if _, err := fmt.Sscanf(word, "%x:%d", &anchor, &end); err != nil {
			t.Fatalf("%v: %s", err, word)
		}
		r.anchors, r.ends = append(r.anchors, anchor), append(r.ends, end)
	}
	return r
}

// begin is how a tape begins.
func begin(t *testing.T, rt *cpython.Runtime, start bpf.PythonWalkWalkStart) []byte {
	t.Helper()
	value, err := kernelValue(rt)
	if err != nil {
		t.Fatal(err)
	}
	var tape bytes.Buffer
	for _, part := range []any{value, &start} {
		if err := binary.Write(&tape, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return tape.Bytes()
}

// regions is the memory of a tape, for the resolver.
type regions []byte

func (r regions) ReadAt(b []byte, at int64) (int, error) {
	tape := []byte(r)
	for len(tape) >= 16 {
		address, length := binary.LittleEndian.Uint64(tape), binary.LittleEndian.Uint64(tape[8:])
		contents := tape[16:][:length]
		if d := uint64(at) - address; uint64(at) >= address && d+uint64(len(b)) <= length {
			return copy(b, contents[d:]), nil
		}
		tape = tape[16+length:]
	}
	return 0, os.ErrNotExist
}

// recordingMemory adds what is read to a tape.
type recordingMemory struct {
	memory io.ReaderAt
	tape   []byte
}

func (m *recordingMemory) ReadAt(b []byte, at int64) (int, error) {
	n, err := m.memory.ReadAt(b, at)
	if err == nil {
		m.tape = binary.LittleEndian.AppendUint64(m.tape, uint64(at))
		m.tape = append(binary.LittleEndian.AppendUint64(m.tape, uint64(len(b))), b...)
	}
	return n, err
}

// description is what is committed beside a tape.
type description struct {
	Version string
	Offsets cpython.Offsets
	Key     uint32
	CodeSym uint64 // PyCode_Type
	Frames  [][3]any
}

// TestRecordedStacksAreWalkedWithoutAKernel replays what
// `EBPFPROF_WRITE_TAPES=1 go test -run TestALiveProcessIsWalkedWithoutAKernel`
// recorded. The expected frames are those that the job itself noted.
func TestRecordedStacksAreWalkedWithoutAKernel(t *testing.T) {
	program := replayer(t)
	tapes, _ := filepath.Glob("testdata/tapes/*.tape")
	if len(tapes) < 6 {
		t.Fatalf("%d tapes", len(tapes))
	}
	for _, path := range tapes {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tape"), func(t *testing.T) {
			tape, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(strings.TrimSuffix(path, ".tape") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var d description
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			version, _ := cpython.ParseVersion(d.Version)
			rt := &cpython.Runtime{Version: version, Offsets: d.Offsets, CodeType: d.CodeSym}
			memory := regions(tape[binary.Size(bpf.PythonWalkPythonRuntime{})+binary.Size(bpf.PythonWalkWalkStart{}):])
			var want []frame
			for _, f := range d.Frames {
				want = append(want, frame{f[0].(string), f[1].(string), int(f[2].(float64))})
			}
			all := replay(t, program, path, "fail")
			whole := all[0]
			if whole.outcome != "python_ok" {
				t.Fatalf("%s", whole.outcome)
			}
			resolver := cpython.NewResolver(rt, memory)
			if got := resolved(t, resolver, whole.frames); !equal(got, want) {
				t.Errorf("the walk saw%s\nthe job saw%s", format(got), format(want))
			}
			for _, cut := range all[1:] {
				checkFailure(t, whole, cut)
			}
			t.Logf("%d frames by %d reads, each failed once", len(whole.frames), whole.reads)
		})
	}
}

func resolved(t *testing.T, resolver *cpython.Resolver, frames []bpf.PythonWalkPythonFrame) []frame {
	t.Helper()
	var all []frame
	for _, f := range frames {
		code, err := resolver.Resolve(f.Code, f.Checksum)
		if err != nil {
			t.Fatal(err)
		}
		line, _ := code.Line(f.Instruction)
		all = append(all, frame{code.Function, code.File, line})
	}
	return all
}

// checkFailure holds a walk of which one read failed against the whole one:
// what it has is right, and what it lacks it says.
func checkFailure(t *testing.T, whole, cut replayed) {
	t.Helper()
	if len(cut.frames) > len(whole.frames) {
		t.Errorf("read %d failed: more frames than there are", cut.failing)
		return
	}
	if cut.entering == 1 {
		// 3.11 and 3.12: a first frame that cannot be read may not be one yet.
		if len(cut.frames) >= len(whole.frames) {
			t.Errorf("read %d failed: a frame was left out, but none is missing", cut.failing)
		}
		return
	}
	unread := 0
	for i, f := range cut.frames {
		full := whole.frames[i]
		if f.Checksum == 0 {
			unread++
			full.Checksum = 0
		}
		if f != full {
			t.Errorf("read %d failed: frame %d is %v, was %v", cut.failing, i, f, full)
		}
	}
	if unread != cut.cold {
		t.Errorf("read %d failed: %d frames without a checksum, %d counted", cut.failing, unread, cut.cold)
	}
	if len(cut.ends) > 0 && cut.ends[len(cut.ends)-1] != len(cut.frames) || len(cut.ends) == 0 && len(cut.frames) > 0 {
		t.Errorf("read %d failed: the segments end at %v of %d frames", cut.failing, cut.ends, len(cut.frames))
	}
	for i, anchor := range cut.anchors {
		if anchor != 0 && anchor != whole.anchors[i] {
			t.Errorf("read %d failed: anchor %d is %#x, was %#x", cut.failing, i, anchor, whole.anchors[i])
		}
	}
	missing := len(cut.frames) < len(whole.frames)
	switch whole := cut.outcome == "python_ok"; {
	case whole && missing:
		t.Errorf("read %d failed: python_ok with %d frames", cut.failing, len(cut.frames))
	case !whole && !missing && cut.outcome != "python_bad_anchor" && cut.outcome != "python_bad_frame":
		t.Errorf("read %d failed: %s, though every frame is there", cut.failing, cut.outcome)
	case whole && cut.cold == 0 && cut.holdsGIL != 2 && cut.inGC != 2:
		t.Errorf("read %d failed and nothing says so", cut.failing)
	}
}

// TestALiveProcessIsWalkedWithoutAKernel reads the memory of a thread that
// stands still; x86-64 only, where pthread_self is the thread pointer.
func TestALiveProcessIsWalkedWithoutAKernel(t *testing.T) {
	program := replayer(t)
	eachPython(t, func(t *testing.T, python pythons.Python) {
		// Under a name that says nothing of this machine: it is in the tapes.
		const run = `exec(compile(open("../../testdata/jobs/stacks.py", encoding="utf-8").read(), "stacks.py", "exec"))`
		j := startJob(t, python, "-c", run)
		i := openPID(t, j.cmd.Process.Pid)
		j.say("wait")
		noted := noted(t, j.line())
		var tid uint32
		var self uint64
		for id := range noted {
			tid = id
		}
		if n, err := strconv.ParseUint(j.line(), 10, 64); err == nil {
			self = n
		}
		tape := filepath.Join(t.TempDir(), python.Version+".tape")
		start := begin(t, i.Runtime, bpf.PythonWalkWalkStart{ThreadPointer: self, NsTid: tid})
		if err := os.WriteFile(tape, start, 0o600); err != nil {
			t.Fatal(err)
		}
		walked := replay(t, program, tape, strconv.Itoa(j.cmd.Process.Pid))[0]
		if walked.outcome != "python_ok" {
			t.Errorf("%s", walked.outcome)
		}
		recording := &recordingMemory{memory: i.memory}
		got := resolved(t, cpython.NewResolver(i.Runtime, recording), walked.frames)
		want := noted[tid][0].frames
		if !equal(got, want) {
			t.Errorf("the walk saw%s\nthe job saw%s", format(got), format(want))
		}
		if os.Getenv("EBPFPROF_WRITE_TAPES") != "" && !t.Failed() {
			writeTape(t, i, tape, recording.tape, want)
		}
		j.say("")
	})
}

func writeTape(t *testing.T, i *Interpreter, walked string, names []byte, frames []frame) {
	t.Helper()
	d := description{Version: i.Version.String(), Offsets: i.Offsets, Key: i.Key, CodeSym: i.CodeType}
	for _, f := range frames {
		d.Frames = append(d.Frames, [3]any{f.function, f.file, f.line})
	}
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	tape, err := os.ReadFile(walked)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join("testdata/tapes", i.Version.String())
	if err := os.MkdirAll("testdata/tapes", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+".json", append(text, '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+".tape", append(tape, names...), 0o666); err != nil {
		t.Fatal(err)
	}
}
