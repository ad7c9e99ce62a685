package python

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// world is the memory of a made-up process: one thread, and frames as a test
// wants them. It stands in for versions that are not installed and for states
// that no healthy process is in.
type world struct {
	rt      *cpython.Runtime
	memory  map[uint64][]byte
	start   bpf.PythonWalkWalkStart
	names   map[uint64]string // of code objects, by address
	objects uint64
}

// Where things are in a world.
const (
	worldRuntime     = 0x10000
	worldInterpreter = 0x20000
	worldThread      = 0x7f0000001000 // the thread pointer
	worldState       = 0x30000
	worldHeap        = 0x1000000
	worldStack       = 0x7ffe00000000
	worldTID         = 4711
)

func newWorld(version cpython.Version, key uint32) *world {
	o := cpython.Lookup(version).Offsets
	o.RuntimeInterpreters, o.RuntimeMain, o.InterpreterNext, o.InterpreterThreads = 632, 640, 7264, 7344
	rt := &cpython.Runtime{
		Version: version, Offsets: o, Pthread: cpython.Pthread{Self: 0, KeyBlock: 784, KeyTable: 1296},
		Address: worldRuntime, AutoTSS: worldRuntime + uint64(o.RuntimeAutoTSS), Interpreter: worldInterpreter,
		Collecting: worldInterpreter + 0x1000,
	}
	w := &world{rt: rt, memory: map[uint64][]byte{}, names: map[uint64]string{}, objects: worldHeap,
		start: bpf.PythonWalkWalkStart{ThreadPointer: worldThread, Sp: worldStack - 4096, NsTid: worldTID}}
	w.memory[worldRuntime] = make([]byte, 8192)
	w.memory[worldInterpreter] = make([]byte, 8192)
	w.memory[worldThread] = make([]byte, 2368)
	w.memory[worldState] = make([]byte, 256)
	w.word(worldRuntime+632, worldInterpreter)
	w.word(rt.AutoTSS, 1|uint64(key)<<32)
	block := uint64(worldThread + 784)
	if key >= 32 {
		block = w.allocate(512)
		w.word(worldThread+1296+8*uint64(key/32), block)
	}
	w.word(block+16*uint64(key%32)+8, worldState)
	w.word(worldState+uint64(o.StateInterpreter), worldInterpreter)
	w.word(worldState+uint64(o.StateThread), worldThread)
	w.word(worldState+uint64(o.StateNative), worldTID)
	return w
}

func (w *world) allocate(size int) uint64 {
	w.objects += 4096
	w.memory[w.objects] = make([]byte, size)
	return w.objects
}

// at is the memory at an address, which was allocated before.
func (w *world) at(address uint64) []byte {
	for base, b := range w.memory {
		if address >= base && address < base+uint64(len(b)) {
			return b[address-base:]
		}
	}
	panic("no such memory")
}

func (w *world) word(address, value uint64) { binary.LittleEndian.PutUint64(w.at(address), value) }

func (w *world) code(name string) uint64 {
	code := w.allocate(512)
	w.word(code+uint64(w.rt.Offsets.CodeName), code+1) // any number that differs
	w.names[code] = name
	return code
}

// frame makes one that is executing the given code unit.
func (w *world) frame(address, code uint64, unit int, owner byte) uint64 {
	o := &w.rt.Offsets
	if address == 0 {
		address = w.allocate(96)
	} else {
		w.memory[address] = make([]byte, 96)
	}
	w.word(address+uint64(o.FrameCode), code)
	w.word(address+uint64(o.FrameInstruction), code&^7+uint64(o.CodeStart)+uint64(2*unit))
	w.at(address + uint64(o.FrameOwner))[0] = owner
	return address
}

// cframe makes the C side of a run of the loop, up to 3.12.
func (w *world) cframe(current, previous uint64) uint64 {
	address := w.allocate(24)
	w.word(address+uint64(w.rt.Offsets.CFrameCurrent), current)
	w.word(address+uint64(w.rt.Offsets.CFramePrevious), previous)
	return address
}

// link makes the frames call each other, leaf first.
func (w *world) link(frames ...uint64) {
	o := &w.rt.Offsets
	w.word(worldState+uint64(o.StateFrames), frames[0])
	for i := range frames[1:] {
		w.word(frames[i]+uint64(o.FramePrevious), frames[i+1])
	}
}

// walk runs the walk over the world.
func (w *world) walk(t *testing.T, program string) replayed {
	t.Helper()
	return replay(t, program, w.record(t))[0]
}

// record writes the world to a file.
func (w *world) record(t *testing.T) string {
	t.Helper()
	tape := begin(t, w.rt, w.start)
	for address, b := range w.memory {
		tape = binary.LittleEndian.AppendUint64(tape, address)
		tape = append(binary.LittleEndian.AppendUint64(tape, uint64(len(b))), b...)
	}
	path := filepath.Join(t.TempDir(), "world.tape")
	if err := os.WriteFile(path, tape, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (w *world) expect(t *testing.T, r replayed, outcome string, names ...string) {
	t.Helper()
	if r.outcome != outcome {
		t.Errorf("%s, want %s", r.outcome, outcome)
	}
	var got []string
	for _, f := range r.frames {
		got = append(got, w.names[f.Code])
	}
	if !slices.Equal(got, names) {
		t.Errorf("frames %q, want %q", got, names)
	}
}

// A frame's owners in 3.14.
const (
	byThread = 0
	byEntry  = 3
	byCStack = 4
)

func TestMadeUpProcesses(t *testing.T) {
	program := replayer(t)
	v314 := cpython.Version{Major: 3, Minor: 14}
	v314t := cpython.Version{Major: 3, Minor: 14, FreeThreaded: true}

	t.Run("3.14: references are tagged, and two kinds of frames are the interpreter's own", func(t *testing.T) {
		w := newWorld(v314, 5)
		inner, outer := w.code("inner"), w.code("outer")
		const none = 0x99990
		w.link(w.frame(0, inner|1, 7, byThread), w.frame(worldStack, none|1, 0, byEntry),
			w.frame(0, outer|3, 0, byThread), w.frame(worldStack+4096, none, 0, byCStack))
		r := w.walk(t, program)
		w.expect(t, r, "python_ok", "inner", "outer")
		if r.frames[0].Instruction != 7 || r.frames[1].Instruction != 0 {
			t.Errorf("instructions %d, %d", r.frames[0].Instruction, r.frames[1].Instruction)
		}
		if !slices.Equal(r.anchors, []uint64{worldStack, worldStack + 4096}) || !slices.Equal(r.ends, []int{1, 2}) {
			t.Errorf("anchors %#x, ends %v", r.anchors, r.ends)
		}
	})
	t.Run("3.14t: a thread runs its own copy of the bytecode", func(t *testing.T) {
		w := newWorld(v314t, 5)
		w.rt.Offsets.CodeTLBC = 160
		code := w.code("copied")
		copies, bytecode := w.allocate(64), w.allocate(64)
		w.word(code+160, copies)
		w.word(copies, 3)
		w.word(copies+8+8*2, bytecode)
		frame := w.frame(0, code|1, 0, byThread)
		w.word(frame+uint64(w.rt.Offsets.FrameInstruction), bytecode+2*11)
		w.at(frame + uint64(w.rt.Offsets.FrameTLBC))[0] = 2
		w.link(frame, w.frame(worldStack, 0, 0, byEntry))
		r := w.walk(t, program)
		w.expect(t, r, "python_ok", "copied")
		if r.frames[0].Instruction != 11 {
			t.Errorf("instruction %d", r.frames[0].Instruction)
		}
	})
	t.Run("musl: a thread's values are a list of pointers", func(t *testing.T) {
		w := newWorld(v314, 5)
		for _, key := range []uint32{0, 6, 127} {
			w.rt.Pthread = cpython.Pthread{KeyTable: 128, Plain: true}
			w.word(w.rt.AutoTSS, 1|uint64(key)<<32)
			values := w.allocate(1024)
			w.word(worldThread+128, values)
			w.word(values+8*uint64(key), worldState)
			w.link(w.frame(0, w.code("plain"), 7, byThread), w.frame(worldStack, 0, 0, byEntry))
			w.expect(t, w.walk(t, program), "python_ok", "plain")
		}
		w.word(worldThread+128, 0)
		w.expect(t, w.walk(t, program), "python_no_thread_state")
	})
	for name, stale := range map[string]uint64{
		"nothing": 0xbad000, "something that is no frame": worldInterpreter, "a frame of no code": worldHeap - 4096,
	} {
		t.Run("3.12: the loop is being entered, and its CFrame names "+name, func(t *testing.T) {
			w := newWorld(cpython.Version{Major: 3, Minor: 12}, 5)
			w.rt.CodeType = 0xc0de
			running := w.code("running")
			w.word(running+8, w.rt.CodeType)
			w.frame(worldHeap-4096, w.code("no code"), 0, byThread)
			before := w.cframe(w.frame(0, running, 4, byThread), 0)
			w.word(worldState+uint64(w.rt.Offsets.StateFrames), w.cframe(stale, before))
			r := w.walk(t, program)
			w.expect(t, r, "python_ok", "running")
			if r.entering != 1 {
				t.Error("the frame that was left out is not counted")
			}
		})
	}
	t.Run("a frame below the first that refers to no code object", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.rt.CodeType = 0xc0de
		running := w.code("running")
		w.word(running+8, w.rt.CodeType)
		w.link(w.frame(0, running, 0, byThread), w.frame(0, w.code("no code"), 0, byThread))
		w.expect(t, w.walk(t, program), "python_bad_frame", "running")
	})
	t.Run("a key of the second level", func(t *testing.T) {
		w := newWorld(v314, 133)
		w.link(w.frame(0, w.code("f"), 0, byThread))
		w.expect(t, w.walk(t, program), "python_ok", "f")
	})
	t.Run("a key of the second level that the thread never set", func(t *testing.T) {
		w := newWorld(v314, 133)
		w.word(worldThread+1296+8*(133/32), 0)
		w.expect(t, w.walk(t, program), "python_no_thread_state")
	})
	t.Run("a key that was found by search", func(t *testing.T) {
		w := newWorld(v314, 9)
		w.rt.AutoTSS, w.rt.Key = 0, 9
		w.link(w.frame(0, w.code("f"), 0, byThread))
		w.expect(t, w.walk(t, program), "python_ok", "f")
	})
	t.Run("an interpreter that is not initialised", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.word(w.rt.AutoTSS, 0)
		w.expect(t, w.walk(t, program), "python_not_initialised")
	})
	t.Run("a thread without Python frames", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.expect(t, w.walk(t, program), "python_no_frames")
	})
	t.Run("another thread's state", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.word(worldState+uint64(w.rt.Offsets.StateThread), 1)
		w.word(worldState+uint64(w.rt.Offsets.StateNative), 1)
		w.expect(t, w.walk(t, program), "python_foreign_state")
	})
	t.Run("a state that a fork left with its parent's thread id", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.word(worldState+uint64(w.rt.Offsets.StateNative), 1)
		w.link(w.frame(0, w.code("f"), 0, byThread))
		w.expect(t, w.walk(t, program), "python_ok", "f")
	})
	t.Run("an interpreter that is not in the list", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.word(worldState+uint64(w.rt.Offsets.StateInterpreter), 0xdead0)
		w.expect(t, w.walk(t, program), "python_foreign_state")
	})
	t.Run("a subinterpreter", func(t *testing.T) {
		w := newWorld(v314, 5)
		sub := w.allocate(8192)
		w.word(worldInterpreter+uint64(w.rt.Offsets.InterpreterNext), sub)
		w.word(worldState+uint64(w.rt.Offsets.StateInterpreter), sub)
		w.link(w.frame(0, w.code("f"), 0, byThread))
		r := w.walk(t, program)
		w.expect(t, r, "python_ok", "f")
		if r.holdsGIL != 2 || r.inGC != 2 {
			t.Errorf("holds_gil %d, in_gc %d: only the main interpreter's are known", r.holdsGIL, r.inGC)
		}
	})
	t.Run("frames that run in a circle", func(t *testing.T) {
		w := newWorld(v314, 5)
		a, b, c := w.frame(0, w.code("a"), 0, byThread), w.frame(0, w.code("b"), 0, byThread), w.frame(0, w.code("c"), 0, byThread)
		w.link(a, b, c, b)
		if r := w.walk(t, program); r.outcome != "python_loop" || len(r.frames) > 8 {
			t.Errorf("%s after %d frames", r.outcome, len(r.frames))
		}
	})
	t.Run("a frame that cannot be read: what is above it is kept", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.link(w.frame(0, w.code("a"), 0, byThread), 0xbad000)
		r := w.walk(t, program)
		w.expect(t, r, "python_bad_frame", "a")
		if !slices.Equal(r.ends, []int{1}) || r.anchors[0] != 0 {
			t.Errorf("anchors %#x, ends %v", r.anchors, r.ends)
		}
	})
	t.Run("a cold code object: the frame is kept and counted", func(t *testing.T) {
		w := newWorld(v314, 5)
		w.link(w.frame(0, 0xc01d000, 3, byThread), w.frame(0, w.code("warm"), 0, byThread))
		r := w.walk(t, program)
		w.expect(t, r, "python_ok", "", "warm")
		if r.cold != 1 || r.frames[0].Checksum != 0 {
			t.Errorf("cold %d, checksum %x", r.cold, r.frames[0].Checksum)
		}
	})
	t.Run("an instruction outside of its code is not known", func(t *testing.T) {
		w := newWorld(v314, 5)
		frame := w.frame(0, w.code("f"), 0, byThread)
		w.word(frame+uint64(w.rt.Offsets.FrameInstruction), 0)
		w.link(frame)
		if r := w.walk(t, program); r.frames[0].Instruction != cpython.InstructionUnknown {
			t.Errorf("instruction %d", r.frames[0].Instruction)
		}
	})
	t.Run("as many shims as frames, and more than are kept", func(t *testing.T) {
		w := newWorld(v314, 5)
		code := w.code("f")
		var frames []uint64
		for i := range 200 {
			frames = append(frames, w.frame(0, code, i, byThread), w.frame(worldStack+uint64(i)*4096, 0, 0, byEntry))
		}
		w.link(frames...)
		r := w.walk(t, program)
		if r.outcome != "python_max_frames" || len(r.frames) != maxFrames || len(r.ends) != maxFrames {
			t.Errorf("%s: %d frames, %d segments", r.outcome, len(r.frames), len(r.ends))
		}
		if last := r.anchors[maxFrames-1]; last != worldStack+(maxFrames-1)*4096 {
			t.Errorf("the last anchor is %#x", last)
		}
	})
}

func TestOffsetsBeyondWhatTheWalkReadsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*cpython.Offsets){
		"a thread state's field": func(o *cpython.Offsets) { o.StateFrames = 300 },
		"a frame's field":        func(o *cpython.Offsets) { o.FrameInstruction = 128 },
		"a code object's field":  func(o *cpython.Offsets) { o.CodeName = 200 },
		"the bytecode":           func(o *cpython.Offsets) { o.CodeStart = 400 },
	} {
		w := newWorld(cpython.Version{Major: 3, Minor: 13}, 5)
		change(&w.rt.Offsets)
		if _, err := kernelValue(w.rt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
