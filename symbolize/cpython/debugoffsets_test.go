package cpython

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// debugBytes makes _Py_DebugOffsets whose every field is what value says.
func debugBytes(version uint64, fields string, value func(name string) uint64) []byte {
	b := []byte(debugCookie)
	for _, name := range strings.Fields(fields) {
		v := value(name)
		if name == "version" {
			v = version
		}
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// plausible values: sizes large, offsets of their own.
func plausible(name string) uint64 {
	if strings.HasSuffix(name, ".size") {
		return 4096
	}
	switch name {
	case "free_threaded":
		return 0
	case "interpreter.gil_holder":
		return plausible("interpreter.gil") + 8
	}
	sum := uint64(0)
	for _, c := range []byte(name) {
		sum = (sum*31 + uint64(c)) % 500
	}
	return 8 * sum
}

func TestDebugOffsetsOf314AreReadByTheirOwnLayout(t *testing.T) {
	debug, err := ParseDebugOffsets(debugBytes(0x030e02f0, debugFields314, plausible))
	if err != nil {
		t.Fatal(err)
	}
	if debug.Version != (Version{3, 14, 2, false}) {
		t.Errorf("the version is %s", debug.Version)
	}
	o := debug.Apply(table314.Offsets)
	for name, got := range map[string]int{
		"interpreter.threads_head": o.InterpreterThreads, "thread.current_frame": o.StateFrames,
		"frame.owner": o.FrameOwner, "code.co_code_adaptive": o.CodeStart, "unicode.state": o.UnicodeState,
	} {
		if got != int(plausible(name)) {
			t.Errorf("%s is %d, not %d", name, got, plausible(name))
		}
	}
	if o.FrameTLBC != Absent {
		t.Error("a build with the GIL has no thread-local bytecode")
	}
}

func TestDebugOffsetsThatMakeNoSenseAreRefused(t *testing.T) {
	whole := debugBytes(0x030d00f0, debugFields313, plausible)
	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"nothing":       {nil, ErrNoDebugOffsets},
		"another magic": {[]byte(strings.Repeat("x", 600)), ErrNoDebugOffsets},
		"cut":           {whole[:200], ErrDebugOffsets},
		"an offset beyond its structure": {debugBytes(0x030d00f0, debugFields313, func(name string) uint64 {
			if name == "thread.interp" {
				return 5000
			}
			return plausible(name)
		}), ErrDebugOffsets},
		"a huge structure": {debugBytes(0x030d00f0, debugFields313, func(name string) uint64 {
			if name == "thread.size" {
				return 1 << 40
			}
			return plausible(name)
		}), ErrDebugOffsets},
	} {
		if _, err := ParseDebugOffsets(c.bytes); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var refused *UnsupportedError
	if _, err := ParseDebugOffsets(debugBytes(0x030f00a1, debugFields314, plausible)); !errors.As(err, &refused) ||
		refused.Flavour != FlavourVersion {
		t.Errorf("3.15: %v", err)
	}
}
