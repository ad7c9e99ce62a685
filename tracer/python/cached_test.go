package python

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// Frames lie side by side since 3.11: those in 2 KiB are read at once, and none
// below the page of the first, where perhaps nothing is.
func TestNeighbouringFramesAreReadAtOnce(t *testing.T) {
	program := replayer(t)
	w := newWorld(cpython.Version{Major: 3, Minor: 13}, 5)
	const count, size = 20, 200
	stack := w.allocate(8192) + 192 // the first frame lies in the page's first bytes
	outermost := stack
	var frames []uint64
	var names []string
	for i := range count {
		name := string(rune('a' + i))
		code, address := w.code(name), stack+uint64(size*(count-1-i))
		w.word(address+uint64(w.rt.Offsets.FrameCode), code)
		w.word(address+uint64(w.rt.Offsets.FrameInstruction), code+uint64(w.rt.Offsets.CodeStart)+2)
		frames, names = append(frames, address), append(names, name)
	}
	w.link(frames...)
	r := w.walk(t, program)
	w.expect(t, r, "python_ok", names...)
	// A code object each, five windows (a page and its beginning), and what finds the thread.
	if most := count + 5 + 6; r.reads > most {
		t.Errorf("%d frames by %d reads, want %d at most", count, r.reads, most)
	}

	// Nothing lies below the outermost frame, not even in its page.
	below := w.memory[outermost-192]
	delete(w.memory, outermost-192)
	w.memory[outermost] = below[192:]
	cut := w.walk(t, program)
	w.expect(t, cut, "python_ok", names...)
}

// Of a frame whose own words are as they were the code object is known: one time in
// eight it is read all the same. Whatever else the frame has is seen at once.
func TestACachedCodeObjectIsReadOneTimeInEight(t *testing.T) {
	program := replayer(t)
	const check = 8 // PYTHON_CHECK of bpf/python_code.h
	build := func() (*world, uint64, uint64) {
		w := newWorld(cpython.Version{Major: 3, Minor: 13}, 5)
		inner, outer := w.code("inner"), w.code("outer")
		frame := w.frame(0, inner, 7, byThread)
		w.link(frame, w.frame(0, outer, 3, byThread))
		return w, inner, frame
	}
	run := func(t *testing.T, change func(w *world, inner, frame uint64)) []replayed {
		before, _, _ := build()
		after, inner, frame := build()
		change(after, inner, frame)
		all := replay(t, program, before.record(t), "then", after.record(t))
		if len(all) != 2*check {
			t.Fatalf("%d walks", len(all))
		}
		return all
	}

	t.Run("nothing changes", func(t *testing.T) {
		all := run(t, func(*world, uint64, uint64) {})
		first := all[0]
		for i, r := range all {
			if r.frames[0] != first.frames[0] || r.frames[1] != first.frames[1] {
				t.Errorf("walk %d: %v, want %v", i, r.frames, first.frames)
			}
			// The ninth walk is the eighth that knows them.
			if want := i == 0 || i%check == 0; (r.reads == first.reads) != want || !want && r.reads != first.reads-2 {
				t.Errorf("walk %d took %d reads, the first one %d", i, r.reads, first.reads)
			}
		}
	})
	t.Run("another code object in its place", func(t *testing.T) {
		all := run(t, func(w *world, inner, _ uint64) { w.word(inner+uint64(w.rt.Offsets.CodeName), 0x12345) })
		old := all[0].frames[0].Checksum
		noticed := -1
		for i, r := range all[check:] {
			if r.frames[0].Checksum != old && noticed < 0 {
				noticed = i
			}
			if noticed >= 0 && r.frames[0].Checksum != all[len(all)-1].frames[0].Checksum {
				t.Errorf("walk %d after the change: %#x", i, r.frames[0].Checksum)
			}
		}
		if noticed < 0 {
			t.Errorf("not noticed in %d walks", check)
		}
	})
	for name, change := range map[string]func(w *world, inner, frame uint64){
		"with globals of its own": func(w *world, _, frame uint64) { w.word(frame+uint64(24), 0x777) },
		"at another instruction": func(w *world, inner, frame uint64) {
			w.word(frame+uint64(w.rt.Offsets.FrameInstruction), inner+uint64(w.rt.Offsets.CodeStart)+16)
		},
	} {
		t.Run("another code object in its place, "+name, func(t *testing.T) {
			all := run(t, func(w *world, inner, frame uint64) {
				w.word(inner+uint64(w.rt.Offsets.CodeName), 0x12345)
				change(w, inner, frame)
			})
			if old, now := all[check-1].frames[0].Checksum, all[check].frames[0].Checksum; now == old {
				t.Errorf("the first walk after the change still has %#x", old)
			}
		})
	}
}
