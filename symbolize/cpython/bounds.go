package cpython

import (
	"fmt"
	"math"
)

// Bounds of offsets. Since 3.13 a build says its own, and its file may be anybody's: each is
// held against what is read of its structure, before anything is read by it.
const (
	// maxState and maxInterpreter hold the structures of every version several times over.
	maxRuntime     = 1 << 24
	maxInterpreter = 1 << 15 // the kernel's walk has 16 bits for it
	maxState       = 1 << 12
	maxFrame       = 1 << 10
	maxObject      = 256
	maxGIL         = 256
)

// bound is where a field of some bytes has to end.
type bound struct {
	name       string
	offset     int
	size, most int
	mayBe      bool // absent
}

func (o *Offsets) bounds() []bound {
	return []bound{
		{"runtime.autoTSSkey", o.RuntimeAutoTSS, keySearch + 8, maxRuntime, false},
		{"runtime.gil", o.RuntimeGIL, 16, maxRuntime, true},
		{"runtime.interpreters", o.RuntimeInterpreters, 8, maxRuntime, false},
		{"runtime.main", o.RuntimeMain, 8, maxRuntime, false},
		{"runtime.collecting", o.RuntimeCollecting, 4, maxRuntime, true},
		{"runtime.size", o.RuntimeSize, 0, maxRuntime, true},
		{"interpreter.next", o.InterpreterNext, 8, maxInterpreter, false},
		{"interpreter.threads", o.InterpreterThreads, 8, maxRuntime, false},
		{"interpreter.gil", o.InterpreterGIL, 8, maxRuntime, true},
		{"gil.holder", o.GILHolder, 16, maxGIL + 16, true},
		{"interpreter.collecting", o.InterpreterCollecting, 4, maxRuntime, true},
		{"state.next", o.StateNext, 8, maxState, false},
		{"state.interpreter", o.StateInterpreter, 8, maxState, false},
		{"state.frames", o.StateFrames, 8, maxState, false},
		{"state.cframe", o.StateCFrame, 8, maxState, true},
		{"state.thread", o.StateThread, 8, maxState, false},
		{"state.native", o.StateNative, 8, maxState, true},
		{"cframe.current", o.CFrameCurrent, 8, maxObject, true},
		{"cframe.previous", o.CFramePrevious, 8, maxObject, true},
		{"frame.code", o.FrameCode, 8, maxFrame, false},
		{"frame.previous", o.FramePrevious, 8, maxFrame, false},
		{"frame.instruction", o.FrameInstruction, 8, maxFrame, false},
		{"frame.owner", o.FrameOwner, 1, maxFrame, true},
		{"frame.tlbc_index", o.FrameTLBC, 4, maxFrame, true},
		{"code.argcount", o.CodeArgcount, 4, CodeBytes, false},
		{"code.kwonlyargcount", o.CodeKwonly, 4, CodeBytes, false},
		{"code.flags", o.CodeFlags, 4, CodeBytes, false},
		{"code.firstlineno", o.CodeLine, 4, CodeBytes, false},
		{"code.filename", o.CodeFilename, 8, CodeBytes, false},
		{"code.name", o.CodeName, 8, CodeBytes, false},
		{"code.qualname", o.CodeQualname, 8, CodeBytes, true},
		{"code.linetable", o.CodeLinetable, 8, CodeBytes, false},
		{"code.co_tlbc", o.CodeTLBC, 8, maxFrame, true},
		{"code.co_code_adaptive", o.CodeStart, 0, maxFrame, true},
		{"object.ob_type", o.ObjectType, 8, CodeBytes, false},
		{"type.tp_name", o.TypeName, 8, maxState, true},
		{"unicode.length", o.UnicodeLength, 8, o.UnicodeASCII, false},
		{"unicode.state", o.UnicodeState, 4, o.UnicodeASCII, false},
		{"unicode.asciiobject_size", o.UnicodeASCII, 0, maxObject, false},
		{"unicode.compact_size", o.UnicodeCompact, 0, maxObject, false},
		{"unicode.kind", o.UnicodeKind, 5, 32, false}, // bits
		{"bytes.ob_size", o.BytesSize, 8, maxObject, false},
		{"bytes.ob_sval", o.BytesData, 0, maxObject, false},
	}
}

// check refuses offsets by which something else than the field would be read. The error
// wraps ErrDebugOffsets.
func (o *Offsets) check() error {
	for _, b := range o.bounds() {
		if b.offset == Absent && b.mayBe {
			continue
		}
		if b.offset < 0 || b.offset > math.MaxInt32 || b.offset+b.size > b.most {
			return fmt.Errorf("%w: %s is at %d, and has to end within %d bytes", ErrDebugOffsets, b.name, b.offset, b.most)
		}
	}
	return nil
}
